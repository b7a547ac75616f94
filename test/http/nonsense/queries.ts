import type { Operation, Parameter } from '../operations.ts'
import type { Attempt, Right } from './attempt.ts'
import { badEncodings } from './encodings.ts'

export function badQueries(operation: Operation, right: Right): Attempt[] {
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

/** Until there are enough: names that nobody knows, made of a fixed sequence so that a failure can be had again. */
export function unknownParameters(right: Right, count: number): Attempt[] {
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
