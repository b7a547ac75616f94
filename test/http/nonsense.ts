/** Requests that cannot be right, made from what the OpenAPI document says is right. */
import { bearer, keyOf, type Who } from './http-server.ts'
import { bodyOf, exampleIn, type JsonSchema, type Operation, type Parameter, pathOf } from './operations.ts'

export interface Attempt {
  /** What is wrong with it. */
  readonly what: string
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** The statuses that fit. */
  readonly expected: readonly number[]
}

/** Where things are that the caller of `nonsenseFor` has made, by the name of the parameter. */
export type Places = Readonly<Record<string, string>>

/** Every operation gets at least this many. */
const ENOUGH = 200

export function nonsenseFor(operation: Operation, places: Places): Attempt[] {
  const right = rightRequest(operation, places)
  const attempts = [
    ...badKeys(operation, right),
    ...foreignIds(operation, right),
    ...badPaths(operation, places, right),
    ...badMethods(operation, right),
    ...badQueries(operation, right),
    ...badBodies(operation, right),
    ...badHeaders(operation, right),
  ]
  return [...attempts, ...unknownParameters(right, ENOUGH - attempts.length)]
}

interface Right {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

function rightRequest(operation: Operation, places: Places): Right {
  const body = bodyOf(operation)
  return {
    method: operation.method,
    path: pathOf(operation, places),
    headers: { ...bearer('admin'), ...(body ? { 'content-type': body.type } : {}) },
    ...(body ? { body: body.text } : {}),
  }
}

function badKeys({ access }: Operation, right: Right): Attempt[] {
  if (access === 'anybody') return []
  const admin = keyOf('admin')
  const headers = [
    '',
    'Bearer',
    'Bearer ',
    `Bearer ${admin}x`,
    `Bearer ${admin.slice(0, -1)}`,
    `Bearer ${admin.toUpperCase()}`,
    `Bearer  ${admin} ${admin}`,
    `Basic ${Buffer.from(`admin:${admin}`).toString('base64')}`,
    `Token ${admin}`,
    admin,
    `Bearer slk_${'A'.repeat(43)}`,
    `Bearer ${'x'.repeat(5_000)}`,
    'Bearer __proto__',
    'Bearer sha256:0000',
    `Bearer ${keyOf('expired')}`,
  ]
  const { authorization: _, ...without } = right.headers
  const wrong = headers.map((authorization) => ({ ...without, authorization }))
  const refused = [without, ...wrong].map((each) => ({
    ...right,
    what: `the key ${JSON.stringify('authorization' in each ? each.authorization.slice(0, 30) : 'missing')}`,
    headers: each,
    expected: [401],
  }))
  const others = (['operator', 'viewer', 'tenant'] as const).filter((who) => !access.includes(who))
  const forbidden = others.map((who) => ({
    ...right,
    what: `the role ${who}`,
    headers: { ...right.headers, ...bearer(who) },
    expected: [403],
  }))
  return [...refused, ...forbidden]
}

function foreignIds(operation: Operation, right: Right): Attempt[] {
  const attempts: Attempt[] = []
  const as = (who: Who) => ({ ...right.headers, ...bearer(who) })
  const names = operation.parameters.map(({ name }) => name)
  if (operation.access !== 'anybody' && names.some((name) => name === 'queue' || name === 'action')) {
    attempts.push({ ...right, what: 'a queue that the key cannot see', headers: as('elsewhere'), expected: [404] })
  }
  if (operation.access === 'anybody' || !operation.access.includes('tenant')) return attempts
  const isNamed = operation.parameters.some(({ in: place, name }) => place === 'path' && owned.includes(name))
  if (isNamed) attempts.push({ ...right, what: 'what is another tenant’s', headers: as('rival'), expected: [404] })
  if (
    operation.method === 'GET' &&
    operation.parameters.some(({ in: place, name }) => place === 'query' && name === 'tenant')
  ) {
    attempts.push({
      ...right,
      what: 'another tenant',
      path: `${right.path}?tenant=acme`,
      headers: as('rival'),
      expected: [404],
    })
  }
  if (right.body?.includes('"tenant":"acme"')) {
    attempts.push({ ...right, what: 'work for another tenant', headers: as('rival'), expected: [403] })
  }
  return attempts
}

/** Parameters of a path that name what belongs to somebody. */
const owned = ['tenant', 'job', 'letter', 'action']

const badEncodings = ['%', '%zz', '%f', '%ff', '%c3%28', '%ED%A0%80', '%F5%80%80%80', '%%', '%u0041']
const badNames = [
  '%00',
  'a%00b',
  '%0a',
  'a%0d%0aX-Y:%20z',
  '%7f',
  '%1b[2J',
  'x'.repeat(300),
  '%F0%9F%92%A9'.repeat(300),
]
const strangers = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  '..',
  '.',
  '%2e%2e',
  '%2e%2e%2fadmin',
  '..%2f..%2fetc%2fpasswd',
  '%5c..%5c',
  'mail%00',
  'MAIL',
  'mail%20',
  '%20mail',
  'mail;x=1',
  'mail%2f',
  '*',
  '{queue}',
  ':queue',
  '%24%7b7*7%7d',
  "'%20OR%201=1--",
  '%3Cscript%3E',
  'null',
  'undefined',
  '0',
  '-1',
  'x'.repeat(2_000),
]

function badPaths(operation: Operation, places: Places, right: Right): Attempt[] {
  const named = operation.parameters.filter(({ in: place }) => place === 'path').map(({ name }) => name)
  const replaced = named.flatMap((name) => {
    // Any text that can be a name may be the name of a tenant.
    const values = name === 'tenant' ? badNames : [...badNames, ...strangers]
    return [...values, ...badEncodings].map((value) => ({
      ...right,
      what: `${value.slice(0, 40)} for ${name}`,
      path: pathOf(operation, { ...places, [name]: value }),
      expected: [400, 404, 414],
    }))
  })
  // What stands there may be the name of a tenant.
  const endsWithTenant = /tenants(\/\{tenant\})?$/.test(operation.path)
  const suffixes = ['/', '//', ...badEncodings, '%00']
  const more = ['/.', '/..', '/%2e%2e/', '/__proto__', '.json', ';v=1', '~', '%20', '*', '%2f', "'"]
  const tails = endsWithTenant ? suffixes : [...suffixes, ...more]
  const changed = [
    ...tails.map((tail) => right.path + tail),
    `/${right.path}`,
    `/v2${right.path}`,
    right.path.toUpperCase(),
    `/.${right.path}`,
  ]
  const bent = changed.map((path) => ({ ...right, what: `the path ${path}`, path, expected: [400, 404] }))
  return [...replaced, ...bent]
}

function badMethods(operation: Operation, right: Right): Attempt[] {
  const { path } = right
  const { 'content-type': _, ...headers } = right.headers
  return ['PUT', 'OPTIONS', 'TRACE', 'PROPFIND', 'MKCOL', 'LOCK', 'UNLOCK', 'REPORT', 'SEARCH', 'COPY', 'MOVE']
    .filter((method) => method !== operation.method)
    .map((method) => ({ what: `the method ${method}`, method, path, headers, expected: [404] }))
}

function badQueries(operation: Operation, right: Right): Attempt[] {
  const parameters = operation.parameters.filter(({ in: place }) => place === 'query')
  const wrong = parameters.flatMap((parameter) => wrongTexts(parameter).map((text) => `${parameter.name}=${text}`))
  const twice = parameters.map(({ name }) => `${name}=a&${name}=b`)
  const unknown = [
    '__proto__=1',
    '__proto__[x]=1',
    'constructor=1',
    'constructor.prototype=1',
    'toString=1',
    'key=1',
    '=1',
    'a[]=1',
    '%00=1',
    '%ff=1',
    'x=%ff',
    'x=%',
    'tenant[]=acme',
    'limit[$gt]=1',
    'Limit=1',
    ' limit=1'.trimStart().toUpperCase(),
  ]
  // A stream of NDJSON has its options there; with JSON none is allowed, which is refused as well.
  return [...wrong, ...twice, ...unknown].map((query) => ({
    ...right,
    what: `the query ${query.slice(0, 40)}`,
    path: `${right.path}?${query}`,
    expected: [400],
  }))
}

function wrongTexts({ schema }: Parameter): string[] {
  const types = [schema.type].flat()
  const encodings = badEncodings
  if (schema.enum) return ['', 'x', 'HIGH', 'high,low', '__proto__', 'constructor', '0', 'null', '%00', ...encodings]
  if (types.includes('integer') || types.includes('number')) {
    const beyond = [schema.minimum ?? 0, schema.maximum ?? 0].map((bound, at) => String(bound + (at === 0 ? -1 : 1)))
    return [
      '',
      'x',
      '1.5.5',
      '0x10',
      '1e2',
      'NaN',
      'Infinity',
      '-0',
      '%205',
      '5%20',
      '%D9%A3',
      'null',
      '[]',
      '9'.repeat(30),
      ...beyond,
      ...encodings,
    ]
  }
  if (types.includes('boolean')) return ['', 'yes', '1', '0', 'TRUE', 'True', 'null', '[]', 'on', ...encodings]
  return ['', 'x'.repeat(3_000), 'a%00b', '%0a', '%7f', ...encodings]
}

const notJson = [
  '',
  ' ',
  '{',
  '}',
  '[',
  '{"a"',
  '{"a":}',
  "{'a':1}",
  '{"a":1,}',
  '{a:1}',
  'undefined',
  'NaN',
  '{"a":01}',
  '{"a":"\n"}',
  '{"a":"\\x"}',
  '{"a":1}{"b":2}',
  '// {}',
  '<xml/>',
  'a=1&b=2',
  '\u0000',
  '[1,2',
  'tru',
  '"',
  '-',
  '{"a":1e}',
]
const notObjects = [
  '[]',
  '[{}]',
  '""',
  '"x"',
  '0',
  '1',
  'true',
  'false',
  'null',
  '[[[[]]]]',
  `${'['.repeat(50_000)}${']'.repeat(50_000)}`,
]
const notUtf8 = [[0xff], [0xc3, 0x28], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xc0, 0xaf]].map((bytes) =>
  Buffer.concat([Buffer.from('{"type":"'), Buffer.from(bytes), Buffer.from('"}')]),
)
const otherTypes = [
  'text/plain',
  'application/xml',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/octet-stream',
  'application/jsonx',
  'json',
  '*/*',
  'text/json',
  'application/x-ndjsonx',
]

function badBodies(operation: Operation, right: Right): Attempt[] {
  const withBody = (what: string, body: string | Buffer, expected: readonly number[], type = 'application/json') => ({
    ...right,
    what,
    body,
    headers: { ...right.headers, 'content-type': type },
    expected,
  })
  const types = Object.keys(operation.bodies)
  if (types.length === 0) {
    if (operation.method === 'GET') return []
    return [...notObjects, '{}', '{"a":1}', '{"__proto__":1}', ...notJson].map((body) =>
      withBody(`a body nobody reads: ${body.slice(0, 20)}`, body, [400]),
    )
  }
  const others = otherTypes.map((type) => withBody(`the type ${type}`, right.body ?? '', [415], type))
  const huge = withBody('a body of 2 MB', `{"type":"${'x'.repeat(2_000_000)}"}`, [413, 415])
  const json = operation.bodies['application/json']
  const lines = types.includes('application/x-ndjson') ? badLines(operation, right) : []
  if (!json) return [...others, ...lines, withBody('JSON where NDJSON is taken', '{}', [415])]
  const texts = [...notJson, ...notObjects].map((body) => withBody(`the body ${body.slice(0, 20)}`, body, [400]))
  const bytes = notUtf8.map((body) => withBody('a body that is not UTF-8', body, [400]))
  const example = exampleIn(json) as Record<string, unknown>
  const spoiled = spoil(json.schema, example).map(({ where, text }) =>
    withBody(`${where}: ${text.slice(0, 60)}`, text, [400]),
  )
  return [...others, huge, ...texts, ...bytes, ...spoiled, ...lines]
}

/** The first line decides: whatever comes after a good one is taken up to the bad one. */
function badLines(operation: Operation, right: Right): Attempt[] {
  const isAction = operation.id === 'submitAction'
  const path = isAction ? `${right.path}?tenant=acme&action=nonsense&type=SEND` : right.path
  const headers = { ...right.headers, 'content-type': 'application/x-ndjson' }
  const fields = [
    '{"id":1}',
    '{"id":""}',
    `{"id":"${'x'.repeat(257)}"}`,
    '{"id":"a\\u0000"}',
    '{"id":"\\ud800"}',
    '{"id":"normal:default:1:acme"}',
    '{"type":1}',
    '{"type":""}',
    '{"delayMs":-1}',
    '{"delayMs":"1"}',
    '{"runAt":"soon"}',
    '{"runAt":1e99}',
    '{"delayMs":1,"runAt":1}',
    '{"maxRetries":-1}',
    '{"maxRetries":1.5}',
    '{"timeoutMs":0}',
    '{"tenant":"rival"}',
    '{"level":"high"}',
    '{"lane":"x"}',
    '{"ordered":true}',
    '{"x":1}',
    '{"__proto__":{"type":"X"}}',
    '{"constructor":1}',
    '{"toString":1}',
    '{"":1}',
  ]
  const texts = [...notJson.filter((text) => text.trim() !== ''), ...notObjects, ...fields]
  return [
    ...texts.map((body) => ({ ...right, what: `the line ${body.slice(0, 30)}`, path, headers, body, expected: [400] })),
    ...notUtf8.map((body) => ({ ...right, what: 'a line that is not UTF-8', path, headers, body, expected: [400] })),
    {
      ...right,
      what: 'a line of 2 MB',
      path,
      headers,
      body: `{"payload":"${'x'.repeat(2_000_000)}"}`,
      expected: [413],
    },
  ]
}

interface Spoiled {
  readonly where: string
  readonly text: string
}

const unknownFields = [
  'x',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'role',
  'admin',
  '',
  'Tenant',
  'type ',
]

/** The example with one thing wrong in it, each time another. */
function spoil(schema: JsonSchema, example: Record<string, unknown>): Spoiled[] {
  const spoiled: Spoiled[] = []
  const put = (path: readonly (string | number)[], value: unknown, where: string) => {
    spoiled.push({ where, text: JSON.stringify(replaced(example, path, value)) })
  }
  const visit = (at: JsonSchema, path: readonly (string | number)[], value: unknown) => {
    for (const wrong of wrongValues(at)) put(path, wrong, `${path.join('.')} wrong`)
    if (at.properties && at.additionalProperties === false) {
      for (const name of unknownFields) {
        const fields = JSON.stringify({ ...(value as object) }).slice(1, -1)
        // As text, because an object of ours cannot have a field __proto__ in the making.
        const marked = JSON.stringify(replaced(example, path, '@@')).replace(
          '"@@"',
          `{${fields}${fields && ','}${JSON.stringify(name)}:1}`,
        )
        spoiled.push({
          where: `${path.join('.')} with ${name}`,
          text: path.length === 0 ? `{${fields}${fields && ','}${JSON.stringify(name)}:1}` : marked,
        })
      }
    }
    for (const [name, each] of Object.entries(at.properties ?? {}))
      visit(each, [...path, name], (value as Record<string, unknown> | undefined)?.[name] ?? {})
    if (at.items) visit(at.items, [...path, 0], (value as unknown[] | undefined)?.[0] ?? {})
    if (typeof at.additionalProperties === 'object') visit(at.additionalProperties, [...path, 'own'], undefined)
  }
  visit(schema, [], example)
  return spoiled
}

function replaced(value: unknown, path: readonly (string | number)[], by: unknown): unknown {
  const [step, ...rest] = path
  if (step === undefined) return by
  if (typeof step === 'number') return [replaced((value as unknown[] | undefined)?.[step] ?? {}, rest, by)]
  const fields = Object(value) as Record<string, unknown>
  return { ...fields, [step]: replaced(fields[step], rest, by) }
}

function wrongValues(schema: JsonSchema): unknown[] {
  if (schema.anyOf) {
    const isNullable = schema.anyOf.some(({ type }) => type === 'null')
    return isNullable
      ? ['x', 1, true, [], {}]
      : [
          'x',
          1,
          true,
          [],
          ['500/s'],
          { kind: 'x' },
          { kind: 'bucket' },
          '0/s',
          '-1/s',
          '5/parsec',
          { kind: 'concurrency', max: 0 },
        ]
  }
  if (schema.enum) return ['x', '__proto__', 1, null, [], {}, true]
  const number = [schema.minimum, schema.maximum].flatMap((bound, at) =>
    bound === undefined ? [] : [at === 0 ? bound - 1 : bound + 1],
  )
  switch (schema.type) {
    case 'string':
      return [
        1,
        true,
        null,
        [],
        {},
        ...(schema.minLength ? [''] : []),
        ...(schema.maxLength ? ['x'.repeat(schema.maxLength + 1)] : []),
        ...(schema.maxLength === 256 && schema.minLength ? ['a\u0000b', '\n', '\ud800'] : []),
      ]
    case 'integer':
      return ['1', '', null, true, [], {}, 1.5, ...number]
    case 'number':
      return ['1', '', null, true, [], {}, ...number]
    case 'boolean':
      return [0, 1, '', 'true', null, [], {}]
    case 'array':
      return ['', 'x', 1, null, true, {}, { length: 1 }, [1], ['x'], [null], [[]]]
    case 'object':
      return ['', 'x', 1, null, true, [], [{}]]
    default:
      return []
  }
}

function badHeaders(operation: Operation, right: Right): Attempt[] {
  const withHeaders = (what: string, headers: Record<string, string>, expected: readonly number[]) => ({
    ...right,
    what,
    headers: { ...right.headers, ...headers },
    expected,
  })
  const coded = ['gzip', 'br', 'deflate', 'x', 'gzip, identity'].map((coding) =>
    withHeaders(`the coding ${coding}`, { 'content-encoding': coding }, [415]),
  )
  const keys = ['', '""', 'x'.repeat(300)].map((key) =>
    withHeaders(`the Idempotency-Key ${key.slice(0, 10)}`, { 'idempotency-key': key }, [400]),
  )
  const ids = ['x', '-1', '1-x', '*', '0x1', '__proto__'].map((id) =>
    withHeaders(`the Last-Event-ID ${id}`, { 'last-event-id': id }, [400]),
  )
  return [...coded, ...(operation.id === 'submitAction' ? keys : []), ...(operation.id === 'followQueue' ? ids : [])]
}

/** Until there are enough: names that nobody knows, made of a fixed sequence so that a failure can be had again. */
function unknownParameters(right: Right, count: number): Attempt[] {
  let state = 20_305
  const next = () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state
  }
  return Array.from({ length: Math.max(0, count) }, () => {
    const query = `${next().toString(36)}=${encodeURIComponent(String.fromCodePoint(0x20 + (next() % 0xd000)))}`
    return { ...right, what: `the query ${query}`, path: `${right.path}?${query}`, expected: [400] }
  })
}
