import { z } from 'zod'
import type { Queue } from '../../engine/queue.ts'
import { InvalidOptionsError, type OptionProblem } from '../../errors.ts'
import { attachLimits, type LimitsOption } from '../../limits/attachment.ts'
import { type App, type Context, callerOf, queueOf, tenantOf } from '../context.ts'
import { limitDefinition, limitScope, limitStatus, queueParam, tenantName } from '../fields.ts'
import { limitsSeenBy } from '../own-view.ts'
import { operators, readers } from '../roles.ts'

const limitName = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be letters, digits, _ and -, at most 64')

const chosen = z
  .array(z.strictObject({ scope: limitScope, name: limitName.optional() }))
  .max(100)
  .optional()

const limitsChange = z
  .strictObject({
    change: z.record(z.string(), limitDefinition).optional().meta({
      description:
        'Limits by what they are attached to: `queue`, `tenant`, `levels`, or a name of a limit on the queue.',
    }),
    remove: chosen.meta({ description: 'Limits to take off; the name is that of the scope unless given.' }),
    reset: chosen.meta({ description: 'Limits to set back to what the code declares.' }),
  })
  .refine((change) => Object.keys(change).length > 0, 'must have at least one of change, remove, reset')
  .meta({ examples: [{ change: { queue: '500/s', levels: { low: '50/s' } }, remove: [{ scope: 'high' }] }] })

const limitList = z.object({ limits: z.array(limitStatus) }).meta({
  examples: [
    {
      limits: [
        {
          name: 'queue',
          scope: 'queue',
          kind: 'bucket',
          limit: 500,
          used: 2,
          isEstimated: false,
          remaining: 3,
          effectivePerSecond: 472.4,
          jitterMs: 50,
          activeTenants: 2,
          sharePerTenant: 236.2,
        },
      ],
    },
  ],
})

async function change(queue: Queue, wanted: z.infer<typeof limitsChange>): Promise<void> {
  const limits = wanted.change as LimitsOption | undefined
  if (limits) {
    // Before anything is changed: what is wrong changes nothing.
    checkLimits(limits)
    await queue.limits.change(limits)
  }
  for (const { scope, name } of wanted.remove ?? []) await queue.limits.remove(scope, name)
  for (const { scope, name } of wanted.reset ?? []) await queue.limits.reset(scope, name)
}

function checkLimits(limits: LimitsOption): void {
  const problems: OptionProblem[] = []
  attachLimits(limits, 'change', (path, problem) => problems.push({ path, problem }))
  if (problems.length > 0) throw new InvalidOptionsError('the limits', problems)
}

export function addLimitRoutes(app: App, context: Context): void {
  const params = z.strictObject({ queue: queueParam })
  app.route({
    method: 'GET',
    url: '/v1/queues/:queue/limits',
    config: { access: readers },
    schema: {
      operationId: 'listLimits',
      tags: ['limits'],
      summary: 'Lists the limits of a queue and its levels, and of a tenant, with how they stand.',
      params,
      querystring: z.strictObject({
        tenant: tenantName.optional().meta({ description: 'Also the limits of this tenant.' }),
      }),
      response: { 200: limitList },
    },
    handler: async (request) => {
      const queue = queueOf(context, request, request.params.queue)
      const limits = await queue.limits.list(tenantOf(request, request.query.tenant))
      return { limits: limitsSeenBy(callerOf(request), limits) }
    },
  })
  app.route({
    method: 'PATCH',
    url: '/v1/queues/:queue/limits',
    config: { access: operators },
    schema: {
      operationId: 'changeLimits',
      tags: ['limits'],
      summary: 'Changes, removes or resets limits of a queue, on all workers at once.',
      params,
      querystring: z.strictObject({}),
      body: limitsChange,
      response: { 200: limitList },
    },
    handler: async (request) => {
      const queue = queueOf(context, request, request.params.queue)
      await change(queue, request.body)
      return { limits: await queue.limits.list() }
    },
  })
}
