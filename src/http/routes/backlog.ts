import { z } from 'zod'
import { definedOnly } from '../../defined-only.ts'
import type { AuditReport } from '../../engine/audit/audit.ts'
import type { RunDelayedSummary } from '../../engine/delayed-jobs.ts'
import type { Difference } from '../../store/difference.ts'
import { delayReasons } from '../../store/reasons.ts'
import { type App, type Context, queueOf } from '../context.ts'
import { actionName, jobType, queueParam, tenantName } from '../fields.ts'
import { operators } from '../roles.ts'
import { inSteps } from '../step-time.ts'
import type { ShapeOf } from '../view-shape.ts'

const goOn = z.string().max(100).optional().meta({ description: 'Goes on where an earlier request ended.' })
const nextStep = z.string().optional().meta({ description: 'Where to go on; missing when all was looked at.' })

const filter = z
  .strictObject({
    tenant: tenantName.optional(),
    type: jobType.optional(),
    action: actionName.optional(),
    reason: z.enum(delayReasons).optional(),
    cursor: goOn,
  })
  .meta({ description: 'Which delayed jobs are meant; {} means all.', examples: [{ tenant: 'acme', reason: 'retry' }] })

const summary = z
  .object({
    looked: z.number(),
    due: z.number().meta({ description: 'Jobs made due.' }),
    cursor: nextStep,
  } satisfies ShapeOf<RunDelayedSummary>)
  .meta({ examples: [{ looked: 17, due: 3 }] })

const unparked = z
  .object({
    unparked: z.number().meta({ description: 'Tenants put back in line, or that the next claims put there.' }),
  })
  .meta({ examples: [{ unparked: 3 }] })

const difference = z.object({
  kind: z.string(),
  subject: z.string(),
  expected: z.string(),
  found: z.string(),
} satisfies ShapeOf<Difference>)

const auditReport = z
  .object({
    tenants: z.number(),
    differences: z.array(difference).meta({ description: 'The first thousand; repaired unless only looked for.' }),
    counts: z.record(z.string(), z.number()).meta({ description: 'How many of each kind.' }),
    skipped: z.array(z.string()).meta({ description: 'What there was too much of to be looked at.' }),
    cursor: nextStep,
  } satisfies ShapeOf<AuditReport>)
  .meta({ examples: [{ tenants: 17, differences: [], counts: {}, skipped: [] }] })

const auditBody = z
  .strictObject({
    repair: z.boolean().optional().meta({ description: 'Put right what differs; true unless given.' }),
    cursor: goOn,
  })
  .meta({ examples: [{ repair: false }] })

const inPieces = 'A request takes at most half of the time a handler has; go on with its cursor.'

/** What acts on the backlog of a whole queue at once. */
export function addBacklogRoutes(app: App, context: Context): void {
  const params = z.strictObject({ queue: queueParam })
  app.route({
    method: 'POST',
    url: '/v1/queues/:queue/delayed/run',
    config: { access: operators },
    schema: {
      operationId: 'runDelayedJobs',
      tags: ['jobs'],
      summary: 'Makes the delayed jobs that fit due now.',
      description: inPieces,
      params,
      querystring: z.strictObject({}),
      body: filter,
      response: { 200: summary },
    },
    handler: (request) => {
      const queue = queueOf(context, request, request.params.queue)
      const { cursor, ...wanted } = request.body
      return inSteps(context, (signal) => queue.runDelayed(definedOnly(wanted), { ...definedOnly({ cursor }), signal }))
    },
  })
  app.route({
    method: 'POST',
    url: '/v1/queues/:queue/unpark',
    config: { access: operators },
    schema: {
      operationId: 'unparkTenants',
      tags: ['tenants'],
      summary: 'Puts all parked tenants back in line; their limits are asked again with their turns.',
      params,
      querystring: z.strictObject({}),
      response: { 200: unparked },
    },
    handler: async (request) => ({ unparked: await queueOf(context, request, request.params.queue).unpark() }),
  })
  app.route({
    method: 'POST',
    url: '/v1/queues/:queue/audit',
    config: { access: operators },
    schema: {
      operationId: 'auditQueue',
      tags: ['queues'],
      summary: 'Looks whether every job is in one place and every count is right, and puts right what differs.',
      description: inPieces,
      params,
      querystring: z.strictObject({}),
      body: auditBody,
      response: { 200: auditReport },
    },
    handler: async (request) => {
      const queue = queueOf(context, request, request.params.queue)
      const report = await inSteps(context, (signal) => queue.audit({ ...definedOnly(request.body), signal }))
      return { ...report, differences: [...report.differences], skipped: [...report.skipped] }
    },
  })
}
