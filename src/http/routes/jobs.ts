import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { definedOnly } from '../../defined-only.ts'
import { jobBounds } from '../../engine/job-bounds.ts'
import type { JobView } from '../../engine/job-view.ts'
import type { JobOwner, Queue } from '../../engine/queue.ts'
import { parseJobKey } from '../../store/job-place.ts'
import { checkBuiltIn } from '../built-in-check.ts'
import { type App, type Context, callerOf, mayTouch, queueOf, submittingTenant, tenantOf } from '../context.ts'
import { explanationView, viewExplanation } from '../explanation-view.ts'
import { actionName, instant, jobError, jobId, jobIdParam, jobType, level, queueParam, tenantName } from '../fields.ts'
import { explanationSeenBy } from '../own-view.ts'
import { notFound } from '../problem.ts'
import { readers, submitters } from '../roles.ts'
import type { ShapeOf } from '../view-shape.ts'

/** What may be said of one job, wherever it is submitted. */
export const jobFields = {
  payload: z.unknown().optional().meta({ description: 'Anything JSON can hold.' }),
  id: jobId.optional().meta({ description: 'The same id of a tenant again is a no-op while it is known.' }),
  type: jobType.optional(),
  delayMs: z.number().min(0).max(jobBounds.delayMs).optional().meta({ description: 'Not before this long from now.' }),
  runAt: z.number().min(0).optional().meta({ description: 'Not before this moment, in ms since 1970.' }),
  cost: z
    .number()
    .int()
    .min(1)
    .max(jobBounds.cost)
    .optional()
    .meta({ description: 'In permits of every limit it stands under; 1 unless given.' }),
  maxRetries: z.number().int().min(0).max(jobBounds.maxRetries).optional(),
  timeoutMs: z.number().int().min(1).max(jobBounds.timeoutMs).optional(),
}

const oneJob = z
  .strictObject({
    ...jobFields,
    type: jobType,
    tenant: tenantName.optional().meta({ description: 'Whom it is for; `default` unless given.' }),
    level: level.optional(),
    lane: z.string().min(1).max(256).optional().meta({ description: 'The line of its tenant it stands in.' }),
    ordered: z.boolean().optional().meta({ description: 'The next job of its lane starts when this one has ended.' }),
  })
  .meta({ examples: [{ type: 'SEND', tenant: 'acme', id: 'order-17', payload: { to: 'a@example.com' } }] })

const submitted = z
  .object({ id: z.string(), isNew: z.boolean().meta({ description: 'False: the id was known; nothing was stored.' }) })
  .meta({ examples: [{ id: 'order-17', isNew: true }] })

const jobView = z
  .object({
    id: z.string(),
    tenant: z.string(),
    level,
    lane: z.string(),
    action: z.string().optional().meta({ description: 'Name of the action it was submitted with.' }),
    state: z.enum(['waiting', 'delayed', 'running', 'succeeded', 'failed', 'canceled']),
    type: z.string().optional(),
    payload: z.unknown().optional(),
    attempts: z.number().optional(),
    createdAt: instant.optional(),
    error: jobError.optional(),
    reason: z.string().optional(),
    dueAt: instant.optional(),
  } satisfies ShapeOf<JobView>)
  .meta({
    examples: [
      { id: 'order-17', tenant: 'acme', level: 'normal', lane: 'default', state: 'waiting', type: 'SEND', attempts: 0 },
    ],
  })

const canceled = z
  .object({ state: z.enum(['canceled', 'canceling', 'ended']) })
  .meta({ description: '`canceling`: it runs and was told. `ended`: it had ended.', examples: [{ state: 'canceled' }] })

const madeDue = z.object({ state: z.enum(['due', 'waiting', 'running', 'succeeded', 'failed', 'canceled']) }).meta({
  description: '`due`: the next claim puts it in line. Otherwise how it stands: it was not delayed.',
  examples: [{ state: 'due' }],
})

interface NamedJob extends FastifyRequest {
  readonly params: { readonly queue: string; readonly job: string }
  readonly query: { readonly tenant?: string | undefined; readonly action?: string | undefined }
}

/** Does something to a job that the caller may touch, and answers how it stands then; as if there were no others. */
async function actOn<State extends string>(
  context: Context,
  request: NamedJob,
  act: (queue: Queue, job: string, owner: JobOwner) => Promise<State | 'unknown'>,
): Promise<State> {
  const { params, query } = request
  const queue = queueOf(context, request, params.queue)
  const owner = definedOnly({ tenant: tenantOf(request, query.tenant), action: query.action })
  // A generated id names its tenant by itself.
  const place = parseJobKey(params.job)
  const state = place && !mayTouch(request, place.tenant) ? 'unknown' : await act(queue, params.job, owner)
  if (state === 'unknown') throw notFound('such job; a given id is known within its tenant')
  return state
}

export function addJobRoutes(app: App, context: Context): void {
  const query = z.strictObject({
    tenant: tenantName.optional().meta({ description: 'The tenant a given id belongs to; a generated id needs none.' }),
    action: actionName.optional().meta({ description: 'The action a given id was submitted with.' }),
  })
  const params = z.strictObject({ queue: queueParam, job: jobIdParam })
  app.route({
    method: 'POST',
    url: '/v1/queues/:queue/jobs',
    config: { access: submitters },
    schema: {
      operationId: 'submitJob',
      tags: ['jobs'],
      summary: 'Submits one job.',
      params: z.strictObject({ queue: queueParam }),
      querystring: z.strictObject({}),
      body: oneJob,
      response: { 201: submitted, 200: submitted },
    },
    handler: async (request, reply) => {
      const queue = queueOf(context, request, request.params.queue)
      const tenant = submittingTenant(request, request.body.tenant)
      checkBuiltIn(request.body, undefined)
      const job = await queue.submit(definedOnly({ ...request.body, tenant }), { whenFull: 'error' })
      const place = `/v1/queues/${encodeURIComponent(queue.name)}/jobs/${encodeURIComponent(job.id)}`
      const isGenerated = request.body.id === undefined
      const location = isGenerated ? place : `${place}?tenant=${encodeURIComponent(tenant ?? 'default')}`
      return reply
        .code(job.isNew ? 201 : 200)
        .header('location', location)
        .send(job)
    },
  })
  app.route({
    method: 'GET',
    url: '/v1/queues/:queue/jobs/:job',
    config: { access: readers },
    schema: {
      operationId: 'getJob',
      tags: ['jobs'],
      summary: 'Shows what is known of a job.',
      params,
      querystring: query,
      response: { 200: jobView },
    },
    handler: async (request) => {
      const queue = queueOf(context, request, request.params.queue)
      const tenant = tenantOf(request, request.query.tenant)
      const view = await queue.job(request.params.job, definedOnly({ tenant, action: request.query.action }))
      if (!view || !mayTouch(request, view.tenant)) throw notFound('such job; a given id is known within its tenant')
      return view
    },
  })
  app.route({
    method: 'GET',
    url: '/v1/queues/:queue/jobs/:job/explain',
    config: { access: readers },
    schema: {
      operationId: 'explainJob',
      tags: ['jobs'],
      summary: 'Says why a job does not run now: every gate in order, with its values at this moment.',
      params,
      querystring: query,
      response: { 200: explanationView },
    },
    handler: async (request) => {
      const queue = queueOf(context, request, request.params.queue)
      const tenant = tenantOf(request, request.query.tenant)
      const { job } = request.params
      const found = await queue.explain({ job, ...definedOnly({ tenant, action: request.query.action }) })
      if (!found || !mayTouch(request, found.tenant)) throw notFound('such job; a given id is known within its tenant')
      return explanationSeenBy(callerOf(request), viewExplanation(found))
    },
  })
  app.route({
    method: 'POST',
    url: '/v1/queues/:queue/jobs/:job/run',
    config: { access: submitters },
    schema: {
      operationId: 'runJobNow',
      tags: ['jobs'],
      summary: 'Makes a delayed job due now.',
      params,
      querystring: query,
      response: { 200: madeDue },
    },
    handler: async (request) => ({
      state: await actOn(context, request, (queue, job, owner) => queue.runNow(job, owner)),
    }),
  })
  app.route({
    method: 'POST',
    url: '/v1/queues/:queue/jobs/:job/cancel',
    config: { access: submitters },
    schema: {
      operationId: 'cancelJob',
      tags: ['jobs'],
      summary: 'Cancels a job: at once if it waits, through its signal if it runs.',
      params,
      querystring: query,
      response: { 200: canceled },
    },
    handler: async (request) => ({
      state: await actOn(context, request, (queue, job, owner) => queue.cancel(job, owner)),
    }),
  })
}
