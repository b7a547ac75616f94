/** Requests that cannot be right, made from what the OpenAPI document says is right. */
import { bearer } from '../http-server.ts'
import { bodyOf, type Operation, pathOf } from '../operations.ts'
import { badKeys, foreignIds } from './access.ts'
import { type Attempt, identityOf, type Places, type Right } from './attempt.ts'
import { badBodies } from './bodies.ts'
import { badPaths } from './paths.ts'
import { badQueries, unknownParameters } from './queries.ts'

/** Every operation gets at least this many that differ. */
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
  // Two ways to spoil a request may come to the same.
  const different = new Set(attempts.map(identityOf)).size
  return [...attempts, ...unknownParameters(right, ENOUGH - different)]
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

function badMethods(operation: Operation, right: Right): Attempt[] {
  const { path } = right
  const { 'content-type': _, ...headers } = right.headers
  return (
    ['PUT', 'OPTIONS', 'TRACE', 'PROPFIND', 'MKCOL', 'LOCK', 'UNLOCK', 'REPORT', 'SEARCH', 'COPY', 'MOVE']
      // A schedule is made by PUT.
      .filter((method) => method !== 'PUT' || !operation.path.endsWith('/{schedule}'))
      .map((method) => ({ what: `the method ${method}`, method, path, headers, expected: [404] }))
  )
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
