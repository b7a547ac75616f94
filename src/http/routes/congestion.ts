import { z } from 'zod'
import type { CongestionSnapshot, CongestionSummary, TenantCongestion } from '../../engine/congestion-control.ts'
import type { Queue } from '../../engine/queue.ts'
import { backlogFields, exampleBacklog, congestionLevel as level } from '../backlog-fields.ts'
import { type App, type Context, callerOf, queueOf, tenantOf } from '../context.ts'
import { countParam, done, instant, limitParam, queueParam, tenantName } from '../fields.ts'
import { operators, overseers, readers } from '../roles.ts'
import type { ShapeOf } from '../view-shape.ts'

const tenantCongestion = z.object({
  tenant: z.string(),
  ...backlogFields,
  throttles: z.number(),
  lastThrottledAt: instant.optional(),
  lastBackoffMs: z.number().optional(),
  averageThrottlesPerJob: z.number(),
} satisfies ShapeOf<TenantCongestion>)

const moment = {
  at: instant,
  waiting: z.number(),
  speed: z.number(),
  backoffMs: z.number(),
  level,
  etaMs: z.number(),
} satisfies ShapeOf<CongestionSnapshot>

const example = {
  tenant: 'acme',
  ...exampleBacklog,
  throttles: 3,
  lastThrottledAt: 1768000000000,
  averageThrottlesPerJob: 0.02,
}
const exampleMoment = {
  at: 1768000000000,
  waiting: 500,
  speed: 100,
  backoffMs: 6000,
  level: 'MODERATE',
  etaMs: 5000,
}

const summary = z
  .object({
    ...backlogFields,
    activeTenants: z.number(),
    worst: z.object({ tenant: z.string(), level }).optional(),
    tenants: z.array(tenantCongestion).meta({ description: 'Those that have longest to wait, the longest first.' }),
  } satisfies ShapeOf<CongestionSummary>)
  .meta({
    description: 'For the key of a tenant its own jobs only.',
    examples: [
      {
        ...exampleBacklog,
        activeTenants: 1,
        worst: { tenant: 'acme', level: 'MODERATE' },
        tenants: [example],
      },
    ],
  })

/** What a tenant's key sees: itself, as if there were nobody else. */
async function ownSummary(queue: Queue, tenant: string): Promise<z.infer<typeof summary>> {
  const own = await queue.congestion.of(tenant)
  const { waiting, speed, isMeasured, backoffMs, level: worst, etaMs, etaAt } = own
  const isBehind = waiting > 0
  return {
    ...{ waiting, speed, isMeasured, backoffMs, level: worst, etaMs, etaAt },
    activeTenants: isBehind ? 1 : 0,
    ...(isBehind ? { worst: { tenant, level: worst } } : {}),
    tenants: isBehind ? [own] : [],
  }
}

const tenantsParam = countParam({ min: 1, max: 128, default: 50, description: 'At most this many tenants.' })

export function addCongestionRoutes(app: App, context: Context): void {
  const ofQueue = z.strictObject({ queue: queueParam })
  const ofTenant = z.strictObject({ queue: queueParam, tenant: tenantName })
  const limit = z.strictObject({ limit: limitParam })
  app.route({
    method: 'GET',
    url: '/v1/queues/:queue/congestion',
    config: { access: readers },
    schema: {
      operationId: 'getCongestion',
      tags: ['congestion'],
      summary: 'Shows how far a queue is behind, and those of its tenants that have longest to wait.',
      params: ofQueue,
      querystring: z.strictObject({ limit: tenantsParam }),
      response: { 200: summary },
    },
    handler: async (request) => {
      const queue = queueOf(context, request, request.params.queue)
      const own = callerOf(request).tenant
      if (own !== undefined) return ownSummary(queue, own)
      const found = await queue.congestion.summary({ limit: request.query.limit })
      return { ...found, tenants: [...found.tenants] }
    },
  })
  app.route({
    method: 'GET',
    url: '/v1/queues/:queue/congestion/history',
    config: { access: overseers },
    schema: {
      operationId: 'getCongestionHistory',
      tags: ['congestion'],
      summary: 'Shows how far a queue was behind, newest first.',
      params: ofQueue,
      querystring: limit,
      response: {
        200: z
          .object({ history: z.array(z.object({ ...moment, activeTenants: z.number() })) })
          .meta({ examples: [{ history: [{ ...exampleMoment, activeTenants: 5 }] }] }),
      },
    },
    handler: async (request) => {
      const queue = queueOf(context, request, request.params.queue)
      return { history: await queue.congestion.history({ limit: request.query.limit }) }
    },
  })
  app.route({
    method: 'GET',
    url: '/v1/queues/:queue/tenants/:tenant/congestion',
    config: { access: readers },
    schema: {
      operationId: 'getTenantCongestion',
      tags: ['congestion'],
      summary: 'Shows how far a tenant is behind, and how often it was held back.',
      params: ofTenant,
      querystring: z.strictObject({}),
      response: { 200: tenantCongestion.meta({ examples: [example] }) },
    },
    handler: (request) => {
      const queue = queueOf(context, request, request.params.queue)
      return queue.congestion.of(tenantOf(request, request.params.tenant) ?? '')
    },
  })
  app.route({
    method: 'GET',
    url: '/v1/queues/:queue/tenants/:tenant/congestion/history',
    config: { access: readers },
    schema: {
      operationId: 'getTenantCongestionHistory',
      tags: ['congestion'],
      summary: 'Shows how far a tenant was behind, newest first: while it was among the fifty with most backlog.',
      params: ofTenant,
      querystring: limit,
      response: {
        200: z
          .object({ history: z.array(z.object({ ...moment, throttles: z.number() })) })
          .meta({ examples: [{ history: [{ ...exampleMoment, throttles: 3 }] }] }),
      },
    },
    handler: async (request) => {
      const queue = queueOf(context, request, request.params.queue)
      const tenant = tenantOf(request, request.params.tenant) ?? ''
      return { history: await queue.congestion.history({ tenant, limit: request.query.limit }) }
    },
  })
  app.route({
    method: 'POST',
    url: '/v1/queues/:queue/tenants/:tenant/congestion/reset',
    config: { access: operators },
    schema: {
      operationId: 'resetTenantCongestion',
      tags: ['congestion'],
      summary: "Starts a tenant's throttles and averages over; its speed and its history stay.",
      params: ofTenant,
      querystring: z.strictObject({}),
      response: { 200: done.meta({ examples: [{ done: true }] }) },
    },
    handler: async (request) => {
      await queueOf(context, request, request.params.queue).congestion.reset(request.params.tenant)
      return { done: true as const }
    },
  })
}
