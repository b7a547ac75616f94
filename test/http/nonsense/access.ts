import { bearer, keyOf, type Who } from '../http-server.ts'
import type { Operation } from '../operations.ts'
import type { Attempt, Right } from './attempt.ts'

export function badKeys({ access }: Operation, right: Right): Attempt[] {
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

export function foreignIds(operation: Operation, right: Right): Attempt[] {
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
