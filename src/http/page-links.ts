import type { FastifyReply, FastifyRequest } from 'fastify'

/**
 * Says where the next page of a list is (`Link: <…>; rel="next"`, RFC 8288), beside the `cursor` in its body. A path, not
 * a whole address: only whoever asked knows by what name it reached this server.
 */
export function linkNextPage(request: FastifyRequest, reply: FastifyReply, payload: unknown): void {
  const cursor = request.method === 'GET' ? (payload as { cursor?: unknown } | null)?.cursor : undefined
  if (typeof cursor !== 'string') return
  const [path = '', query = ''] = request.url.split('?', 2)
  const next = new URLSearchParams(query)
  next.set('cursor', cursor)
  reply.header('link', `<${path}?${next}>; rel="next"`)
}
