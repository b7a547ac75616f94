import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest, RawServerDefault } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import type { Queue } from '../engine/queue.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { Store } from '../sluice.ts'
import type { AuditStore } from '../store/audit.ts'
import type { IdempotencyStore } from '../store/idempotency.ts'
import type { Caller, KeyRefusal } from './api-keys.ts'
import type { Connections } from './connections.ts'
import { notFound, Problem } from './problem.ts'
import type { Access } from './roles.ts'
import type { ServerSettings } from './server-options.ts'
import type { OpenStreams } from './sse.ts'

/** The server, with schemas of zod. */
export type App = FastifyInstance<RawServerDefault, IncomingMessage, ServerResponse, FastifyBaseLogger, ZodTypeProvider>

/** What routes work with. */
export interface Context {
  readonly settings: ServerSettings
  readonly queues: ReadonlyMap<string, Queue>
  readonly store: Store
  readonly audit: AuditStore
  readonly idempotency: IdempotencyStore
  readonly metrics: Metrics
  readonly streams: OpenStreams
  readonly connections: Connections
  /** Aborted when the server has begun to close and its grace is over: long uploads end. */
  readonly isCut: AbortSignal
}

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller | undefined
    /** Why there is no caller; undefined when no key was sent. */
    refusal: KeyRefusal | undefined
    /** Set by a route that has changed something although it answers with a problem. */
    hasChanged: boolean
  }
  interface FastifyContextConfig {
    access?: Access
    /** Takes as long as it takes: an upload, a download, a stream of events. */
    isStream?: boolean
  }
  interface FastifySchema {
    summary?: string
    operationId?: string
    tags?: readonly string[]
    hide?: boolean
  }
}

/**
 * The reply without the types of its route. A route that answers a stream, or nothing, describes its text by media type; its
 * reply would take only that text.
 */
export function plainReply(reply: { readonly raw: ServerResponse }): FastifyReply {
  return reply as unknown as FastifyReply
}

/** Whoever sent the request. Routes run only after it is known. */
export function callerOf(request: FastifyRequest): Caller {
  if (!request.caller) throw new Problem('unauthorized', 'A valid API key is needed.')
  return request.caller
}

/** The queue of this name, as far as the caller may know of it. */
export function queueOf(context: Context, request: FastifyRequest, name: string): Queue {
  const queue = canSee(callerOf(request), name) ? context.queues.get(name) : undefined
  if (!queue) throw notFound(`queue ${JSON.stringify(name)}; GET /v1/queues lists what there is`)
  return queue
}

export function canSee(caller: Caller, queue: string): boolean {
  return caller.queues === undefined || caller.queues.has(queue)
}

/**
 * The tenant whose things are read or changed: a tenant's key sees its own and no other, as if there were none.
 * @param given - As the request names it; undefined where it does not.
 */
export function tenantOf(request: FastifyRequest, given: string | undefined): string | undefined {
  const { tenant: own } = callerOf(request)
  if (own === undefined) return given
  if (given !== undefined && given !== own) throw notFound(`tenant ${JSON.stringify(given)}`)
  return own
}

/** The tenant that work is submitted for. Naming another's is not a search but a mistake, and is told as one. */
export function submittingTenant(request: FastifyRequest, given: string | undefined): string | undefined {
  const { tenant: own } = callerOf(request)
  if (own === undefined || given === undefined || given === own) return own ?? given
  throw new Problem('forbidden', `This key submits for its own tenant, ${JSON.stringify(own)}, and no other.`)
}

/** False for what belongs to somebody else than the tenant whose key it is. */
export function mayTouch(request: FastifyRequest, tenant: string): boolean {
  const { tenant: own } = callerOf(request)
  return own === undefined || own === tenant
}
