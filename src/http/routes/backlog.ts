import { z } from 'zod'
import { type App, type Context, queueOf } from '../context.ts'
import { definedOnly } from '../defined-only.ts'
import { actionName, jobType, queueParam, tenantName } from '../fields.ts'
import { operators } from '../roles.ts'

const filter = z
  .strictObject({
    tenant: tenantName.optional(),
    type: jobType.optional(),
    action: actionName.optional(),
    reason: z.enum(['upstream', 'retry', 'scheduled', 'unknown-type', 'stall']).optional(),
  })
  .meta({ description: 'Which delayed jobs are meant; {} means all.', examples: [{ tenant: 'acme', reason: 'retry' }] })

const summary = z
  .object({ looked: z.number(), due: z.number().meta({ description: 'Jobs made due.' }) })
  .meta({ examples: [{ looked: 17, due: 3 }] })

const unparked = z
  .object({
    unparked: z.number().meta({ description: 'Tenants put back in line, or that the next claims put there.' }),
  })
  .meta({ examples: [{ unparked: 3 }] })

const difference = z.object({ kind: z.string(), subject: z.string(), expected: z.string(), found: z.string() })

const auditReport = z
  .object({
    tenants: z.number(),
    differences: z.array(difference).meta({ description: 'The first thousand; repaired unless only looked for.' }),
    counts: z.record(z.string(), z.number()).meta({ description: 'How many of each kind.' }),
    skipped: z.array(z.string()).meta({ description: 'What there was too much of to be looked at.' }),
  })
  .meta({ examples: [{ tenants: 17, differences: [], counts: {}, skipped: [] }] })

const auditBody = z
  .strictObject({ repair: z.boolean().optional().meta({ description: 'Put right what differs; true unless given.' }) })
  .meta({ examples: [{ repair: false }] })

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
      params,
      querystring: z.strictObject({}),
      body: filter,
      response: { 200: summary },
    },
    handler: (request) => queueOf(context, request, request.params.queue).runDelayed(definedOnly(request.body)),
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
      params,
      querystring: z.strictObject({}),
      body: auditBody,
      response: { 200: auditReport },
    },
    handler: async (request) => {
      const report = await queueOf(context, request, request.params.queue).audit(definedOnly(request.body))
      return { ...report, differences: [...report.differences], skipped: [...report.skipped] }
    },
  })
}
