import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import type { App } from './context.ts'
import { Problem } from './problem.ts'

export const NDJSON_TYPE = 'application/x-ndjson'

/** JSON that must be UTF-8, and NDJSON that is handed on as it comes. Nothing else is taken. */
export function addBodyParsers(app: App): void {
  app.removeAllContentTypeParsers()
  const parseJson = app.getDefaultJsonParser('error', 'error')
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    if (!isUtf8(body)) done(new Problem('invalid-request', 'The body is not UTF-8.'))
    else void parseJson(request, body.toString('utf8'), done)
  })
  app.addContentTypeParser(NDJSON_TYPE, (_request, stream: IncomingMessage, done) => done(null, stream))
}

export function isNdjson(request: FastifyRequest): boolean {
  return (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() === NDJSON_TYPE
}

/** What a route does not read it must not seem to have obeyed. */
export function refuseUnusedBody(request: FastifyRequest): void {
  const takesBody = request.routeOptions.schema?.body !== undefined
  if (takesBody || request.is404 || request.body === undefined) return
  throw new Problem('invalid-request', 'This takes no body.', {
    errors: [{ path: 'body', problem: 'must be left out' }],
  })
}

/** Of a body in another coding nothing can be told before it is unpacked, least of all how large it is. */
export function refuseEncodedBody(request: FastifyRequest): void {
  const coding = request.headers['content-encoding'] ?? 'identity'
  if (coding.toLowerCase() === 'identity') return
  throw new Problem('unsupported-media-type', 'The body must be sent as it is, without Content-Encoding.')
}

/**
 * A body that trickles in byte by byte holds a connection for as long as its sender likes. NDJSON may take for ever,
 * but not pause (see ndjson.ts).
 */
export function limitBodyTime(request: FastifyRequest, timeoutMs: number): void {
  const { raw } = request
  if (isNdjson(request) || raw.complete) return
  const timer = setTimeout(() => {
    raw.emit('error', new Problem('request-timeout', `The body did not arrive within ${timeoutMs} ms.`))
  }, timeoutMs)
  const stop = () => clearTimeout(timer)
  raw.once('end', stop).once('close', stop).once('error', stop)
}
