import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { definedOnly } from '../../defined-only.ts'
import { LONGEST_CURSOR } from '../../engine/letter-sweep.ts'
import { farthestMs } from '../../engine/moment.ts'
import { deadReasons } from '../../store/reasons.ts'
import { type App, type Context, queueOf, submittingTenant } from '../context.ts'
import { actionName, instant, jobType, queueParam, tenantName } from '../fields.ts'
import { submitters } from '../roles.ts'
import { inSteps } from '../step-time.ts'

/** A request takes no more than this: whoever wants more goes on with the cursor of the answer. */
const MOST_AT_ONCE = 10_000

const moment = instant.min(0).max(farthestMs)

const sweepBody = z
  .strictObject({
    filter: z
      .strictObject({
        tenant: tenantName.optional(),
        type: jobType.optional(),
        action: actionName.optional(),
        reason: z.enum(deadReasons).optional(),
        error: z.string().min(1).max(1_000).optional().meta({ description: 'Text in the message of the error.' }),
        since: moment.optional().meta({ description: 'Died then or later, in ms since 1970.' }),
        until: moment.optional().meta({ description: 'Died then or earlier; the first request unless given.' }),
        all: z.boolean().optional().meta({ description: 'Every letter; a filter that says nothing is refused.' }),
      })
      .meta({ description: 'Which letters are meant: those that fit all that is given.' }),
    rate: z.string().max(50).optional().meta({
      description:
        'How fast: 50/s. It holds over all requests that go on with a cursor. As fast as it goes unless given.',
    }),
    limit: z.number().int().min(1).max(MOST_AT_ONCE).optional().meta({ description: 'Take so many at most.' }),
    cursor: z.string().max(LONGEST_CURSOR).optional().meta({ description: 'Goes on where an earlier request ended.' }),
    dryRun: z.boolean().optional().meta({ description: 'Only count those that fit; `rate` is not kept to.' }),
  })
  .meta({ examples: [{ filter: { tenant: 'acme', error: 'mailbox' }, rate: '50/s' }] })

const sweepView = z
  .object({
    looked: z.number().meta({ description: 'Letters looked at.' }),
    taken: z.number().meta({ description: 'Letters retried or discarded; with `dryRun`, those that fit.' }),
    left: z.number().optional().meta({
      description:
        'Dead letters that there are. Not for the key of a tenant, and not where no letter was looked at yet.',
    }),
    cursor: z.string().optional().meta({ description: 'Where to go on; missing when all were looked at.' }),
  })
  .meta({ examples: [{ looked: 17, taken: 3, left: 14 }] })

/** Dead letters by filter. Nothing is kept in the server: the answer says where to go on, also after a restart. */
export function addLetterSweepRoutes(app: App, context: Context): void {
  const shared = {
    tags: ['dead letters'],
    description: `A request takes at most ${MOST_AT_ONCE} letters and half of the time a handler has; go on with its cursor. Letters that die after the first request are left alone.`,
    params: z.strictObject({ queue: queueParam }),
    querystring: z.strictObject({}),
    body: sweepBody,
    response: { 200: sweepView },
  }
  async function run(
    request: FastifyRequest & { params: { queue: string }; body: z.infer<typeof sweepBody> },
    verb: 'retryAll' | 'discardAll',
  ): Promise<z.infer<typeof sweepView>> {
    const { deadLetters } = queueOf(context, request, request.params.queue)
    const { filter, dryRun, ...given } = request.body
    const own = submittingTenant(request, filter.tenant)
    const wanted = definedOnly({ ...filter, tenant: own, all: filter.all || undefined })
    const options = dryRun ? given : { ...given, limit: given.limit ?? MOST_AT_ONCE }
    const { left, ...progress } = await inSteps(
      context,
      (signal) => deadLetters[dryRun ? 'countAll' : verb](wanted, { ...definedOnly(options), signal }).finished,
    )
    return request.caller?.tenant === undefined ? { ...progress, left } : progress
  }
  app.route({
    method: 'POST',
    url: '/v1/queues/:queue/dead-letters/retry',
    config: { access: submitters },
    schema: {
      operationId: 'retryDeadLetters',
      summary: 'Runs the jobs of all dead letters that fit again.',
      ...shared,
    },
    handler: (request) => run(request, 'retryAll'),
  })
  app.route({
    method: 'POST',
    url: '/v1/queues/:queue/dead-letters/discard',
    config: { access: submitters },
    schema: { operationId: 'discardDeadLetters', summary: 'Discards all dead letters that fit for good.', ...shared },
    handler: (request) => run(request, 'discardAll'),
  })
}
