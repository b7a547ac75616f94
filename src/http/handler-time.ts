import type { FastifyReply, RouteHandlerMethod, RouteOptions } from 'fastify'
import { Problem } from './problem.ts'

/**
 * A store that hangs must not hold requests for ever. The clock starts with the handler, when the whole body is there: how
 * long that may take is bounded apart. What the handler has begun may still happen.
 */
export function limitHandlerTime(route: RouteOptions, { handlerTimeoutMs }: { handlerTimeoutMs: number }): void {
  if (route.config?.isStream) return
  const { handler } = route
  route.handler = function (this: ThisParameterType<RouteHandlerMethod>, request, reply) {
    return inTime(() => handler.call(this, request, reply), reply, handlerTimeoutMs)
  }
}

function inTime(handle: () => unknown, reply: FastifyReply, timeoutMs: number): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      // A client that is slow to take its answer is not the store's fault.
      if (!reply.raw.headersSent) reject(tooLate())
    }, timeoutMs)
    Promise.resolve()
      .then(handle)
      .then(resolve, reject)
      .finally(() => clearTimeout(timer))
  })
}

function tooLate(): Problem {
  return new Problem('unavailable', 'The store did not answer in time. Look at the state before you try again.', {
    retryAfterSeconds: 2,
  })
}
