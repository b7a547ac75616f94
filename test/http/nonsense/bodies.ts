import { exampleIn, type Operation } from '../operations.ts'
import type { Attempt, Right } from './attempt.ts'
import { spoil } from './spoil.ts'

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

export function badBodies(operation: Operation, right: Right): Attempt[] {
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
