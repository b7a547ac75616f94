import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { definedOnly } from '../../defined-only.ts'
import type { Queue } from '../../engine/queue.ts'
import type { TenantView } from '../../engine/tenant-control.ts'
import { tenantPage } from '../../engine/tenant-page.ts'
import { InvalidOptionsError, type OptionProblem } from '../../errors.ts'
import { attachLimits, type LimitsOf } from '../../limits/attachment.ts'
import { isTenantCursor } from '../../store/tenant-tokens.ts'
import { type App, type Context, callerOf, queueOf, tenantOf } from '../context.ts'
import { explanationView, viewExplanation } from '../explanation-view.ts'
import {
  cursorParam,
  instant,
  level,
  limitDefinition,
  limitParam,
  limitStatus,
  nextCursor,
  queueParam,
  tenantName,
} from '../fields.ts'
import { explanationSeenBy, limitsSeenBy } from '../own-view.ts'
import { operators, readers } from '../roles.ts'
import type { ShapeOf } from '../view-shape.ts'

const share = z.object({ entitled: z.number(), received: z.number() })

const tenantFields = {
  tenant: z.string(),
  state: z.enum(['ready', 'parked', 'paused', 'idle']),
  parkedBy: z.string().optional().meta({ description: 'The limit that parked it.' }),
  parkedUntil: instant
    .optional()
    .meta({ description: 'ms since 1970; missing while parked: until one of its jobs ends.' }),
  weight: z.number(),
  basePriority: z.number(),
  levelOverride: level.optional(),
  waiting: z.number(),
  delayed: z.number(),
  running: z.number(),
  longestWaitMs: z.number(),
  fairness: z.object({ high: share, normal: share, low: share }),
} satisfies ShapeOf<TenantView>

const example = {
  tenant: 'acme',
  state: 'ready',
  weight: 1,
  basePriority: 0,
  waiting: 17,
  delayed: 0,
  running: 4,
  longestWaitMs: 12,
  fairness: {
    high: { entitled: 0, received: 0 },
    normal: { entitled: 21, received: 21 },
    low: { entitled: 0, received: 0 },
  },
}

const tenantRow = z.object(tenantFields)
const tenantView = z
  .object({ ...tenantFields, limits: z.array(limitStatus) })
  .meta({ examples: [{ ...example, limits: [] }] })

const tenantChange = z
  .strictObject({
    paused: z.boolean().optional(),
    weight: z.number().min(0.01).max(1_000).optional(),
    basePriority: z.number().int().min(-1e12).max(1e12).optional(),
    level: level.nullable().optional().meta({ description: 'Where all its lines stand; null takes the override off.' }),
    limits: z
      .record(z.string().regex(/^[A-Za-z0-9_-]{1,64}$/), limitDefinition)
      .optional()
      .meta({ description: 'Its own limits by name; null goes back to what the queue says for every tenant.' }),
  })
  .refine((change) => Object.keys(change).length > 0, 'must have at least one field')
  .meta({ examples: [{ weight: 3, limits: { tenant: '50/s' } }] })

/** A view as JSON can hold it: there is no Infinity. */
function asRow(view: TenantView) {
  const { parkedUntil } = view
  return { ...view, parkedUntil: parkedUntil === Number.POSITIVE_INFINITY ? undefined : parkedUntil }
}

async function viewOf(request: FastifyRequest, queue: Queue, tenant: string) {
  const [view, limits] = await Promise.all([queue.tenant(tenant).view(), queue.limits.list(tenant)])
  const own = limits.filter(({ scope }) => scope === 'tenant')
  return { ...asRow(view), limits: limitsSeenBy(callerOf(request), own) }
}

async function change(queue: Queue, name: string, wanted: z.infer<typeof tenantChange>): Promise<void> {
  const limits = Object.entries(wanted.limits ?? {})
  const given = Object.fromEntries(limits.filter(([, definition]) => definition !== null)) as LimitsOf
  const reset = limits.filter(([, definition]) => definition === null)
  // Before anything is changed: what is wrong changes nothing.
  checkLimits(given)
  const tenant = queue.tenant(name)
  const { weight, basePriority, level: override } = wanted
  const settings = definedOnly({ weight, basePriority, level: override })
  if (Object.keys(settings).length > 0) await tenant.set(settings)
  if (Object.keys(given).length > 0) await tenant.setLimits(given)
  for (const [limit] of reset) await tenant.resetLimit(limit)
  if (wanted.paused !== undefined) await (wanted.paused ? tenant.pause() : tenant.resume())
}

function checkLimits(limits: LimitsOf): void {
  const problems: OptionProblem[] = []
  attachLimits({ tenant: limits }, 'limits', (path, problem) => {
    problems.push({ path: path.replace('limits.tenant', 'limits'), problem })
  })
  if (problems.length > 0) throw new InvalidOptionsError('the limits', problems)
}

export function addTenantRoutes(app: App, context: Context): void {
  const params = z.strictObject({ queue: queueParam, tenant: tenantName })
  app.route({
    method: 'GET',
    url: '/v1/queues/:queue/tenants',
    config: { access: readers },
    schema: {
      operationId: 'listTenants',
      tags: ['tenants'],
      summary: 'Lists tenants that have work or are paused, in no order.',
      description:
        'Nothing is kept between pages: a tenant that changes its state meanwhile may be missed or come twice.',
      params: z.strictObject({ queue: queueParam }),
      querystring: z.strictObject({ limit: limitParam, cursor: cursorParam(isTenantCursor) }),
      response: {
        200: z.object({ tenants: z.array(tenantRow), cursor: nextCursor }).meta({
          examples: [{ tenants: [example], cursor: '1.0.50' }],
        }),
      },
    },
    handler: async (request) => {
      const queue = queueOf(context, request, request.params.queue)
      const own = callerOf(request).tenant
      if (own !== undefined) return { tenants: [asRow(await queue.tenant(own).view())] }
      const { tenants, cursor } = await tenantPage(queue, request.query)
      return { tenants: tenants.map(asRow), cursor }
    },
  })
  app.route({
    method: 'GET',
    url: '/v1/queues/:queue/tenants/:tenant',
    config: { access: readers },
    schema: {
      operationId: 'getTenant',
      tags: ['tenants'],
      summary: 'Shows a tenant: how it stands, its settings and its limits.',
      params,
      querystring: z.strictObject({}),
      response: { 200: tenantView },
    },
    handler: (request) => {
      const queue = queueOf(context, request, request.params.queue)
      return viewOf(request, queue, tenantOf(request, request.params.tenant) ?? '')
    },
  })
  app.route({
    method: 'GET',
    url: '/v1/queues/:queue/tenants/:tenant/explain',
    config: { access: readers },
    schema: {
      operationId: 'explainTenant',
      tags: ['tenants'],
      summary: 'Says why no further job of a tenant runs now: every gate in order, with its values at this moment.',
      params,
      querystring: z.strictObject({}),
      response: { 200: explanationView },
    },
    handler: async (request) => {
      const queue = queueOf(context, request, request.params.queue)
      const found = await queue.explain({ tenant: tenantOf(request, request.params.tenant) ?? '' })
      return explanationSeenBy(callerOf(request), viewExplanation(found))
    },
  })
  app.route({
    method: 'POST',
    url: '/v1/queues/:queue/tenants/:tenant/unpark',
    config: { access: operators },
    schema: {
      operationId: 'unparkTenant',
      tags: ['tenants'],
      summary: 'Puts a parked tenant back in line; its limits are asked again with its turn.',
      params,
      querystring: z.strictObject({}),
      response: { 200: tenantView },
    },
    handler: async (request) => {
      const queue = queueOf(context, request, request.params.queue)
      await queue.tenant(request.params.tenant).unpark()
      return viewOf(request, queue, request.params.tenant)
    },
  })
  app.route({
    method: 'PATCH',
    url: '/v1/queues/:queue/tenants/:tenant',
    config: { access: operators },
    schema: {
      operationId: 'changeTenant',
      tags: ['tenants'],
      summary: 'Pauses or resumes a tenant, and changes its weight, base priority, level or limits.',
      params,
      querystring: z.strictObject({}),
      body: tenantChange,
      response: { 200: tenantView },
    },
    handler: async (request) => {
      const queue = queueOf(context, request, request.params.queue)
      await change(queue, request.params.tenant, request.body)
      return viewOf(request, queue, request.params.tenant)
    },
  })
}
