import type { FastifyRequest } from 'fastify'
import { Problem } from './problem.ts'

/** The parser of queries leaves alone what it cannot decode: `%ff` would become a name that nobody meant. */
export function refuseMalformedQuery(request: FastifyRequest): void {
  const start = request.url.indexOf('?')
  if (start < 0) return
  try {
    decodeURIComponent(request.url.slice(start + 1))
  } catch {
    throw new Problem('invalid-request', 'The query is not UTF-8 in percent-encoding.', {
      errors: [{ path: 'query', problem: 'must be UTF-8 in percent-encoding' }],
    })
  }
}
