import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { LetterSweep } from '../../engine/letter-sweep.ts'
import { type App, type Context, queueOf, submittingTenant } from '../context.ts'
import { definedOnly } from '../defined-only.ts'
import { actionName, instant, jobType, queueParam, tenantName } from '../fields.ts'
import { submitters } from '../roles.ts'

/** A request takes no longer than this: whoever wants more goes on with the cursor of the answer. */
const LONGEST_MS = 10_000
const MOST_AT_ONCE = 10_000

const sweepBody = z
  .strictObject({
    filter: z
      .strictObject({
        tenant: tenantName.optional(),
        type: jobType.optional(),
        action: actionName.optional(),
        reason: z.enum(['failed', 'discarded', 'throttled', 'stalled', 'unknown-type', 'unreadable']).optional(),
        error: z.string().min(1).max(1_000).optional().meta({ description: 'Text in the message of the error.' }),
        since: instant.min(0).optional().meta({ description: 'Died then or later, in ms since 1970.' }),
        until: instant.min(0).optional().meta({ description: 'Died then or earlier; now unless given.' }),
        all: z.boolean().optional().meta({ description: 'Every letter; a filter that says nothing is refused.' }),
      })
      .meta({ description: 'Which letters are meant: those that fit all that is given.' }),
    rate: z.string().max(50).optional().meta({ description: 'How fast: 50/s. As fast as it goes unless given.' }),
    limit: z.number().int().min(1).max(MOST_AT_ONCE).optional().meta({ description: 'Take so many at most.' }),
    cursor: z.string().max(100).optional().meta({ description: 'Goes on where an earlier request ended.' }),
    dryRun: z.boolean().optional().meta({ description: 'Only count those that fit.' }),
  })
  .meta({ examples: [{ filter: { tenant: 'acme', error: 'mailbox' }, rate: '50/s' }] })

const sweepView = z
  .object({
    looked: z.number(),
    taken: z.number().meta({ description: 'Letters retried or discarded; with `dryRun`, those that fit.' }),
    left: z.number().optional().meta({ description: 'Dead letters that there are; not for the key of a tenant.' }),
    cursor: z.string().optional().meta({ description: 'Where to go on; missing when all were looked at.' }),
  })
  .meta({ examples: [{ looked: 17, taken: 3, left: 14 }] })

type Verb = 'retryAll' | 'discardAll'

/** Dead letters by filter. Nothing is kept in the server: the answer says where to go on, also after a restart. */
export function addLetterSweepRoutes(app: App, context: Context): void {
  const shared = {
    tags: ['dead letters'],
    description: `A request takes at most ${LONGEST_MS / 1_000} s and ${MOST_AT_ONCE} letters; go on with its cursor. Letters that die after the first request are left alone.`,
    params: z.strictObject({ queue: queueParam }),
    querystring: z.strictObject({}),
    body: sweepBody,
    response: { 200: sweepView },
  }
  async function run(
    request: FastifyRequest & { params: { queue: string }; body: z.infer<typeof sweepBody> },
    verb: Verb,
  ): Promise<z.infer<typeof sweepView>> {
    const { deadLetters } = queueOf(context, request, request.params.queue)
    const { filter, dryRun, ...given } = request.body
    const own = submittingTenant(request, filter.tenant)
    const wanted = definedOnly({ ...filter, tenant: own, all: filter.all || undefined })
    if (dryRun) return { looked: 0, taken: await deadLetters.count(wanted) }
    const { left, ...progress } = await inTime(
      deadLetters[verb](wanted, definedOnly({ limit: MOST_AT_ONCE, ...given })),
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

async function inTime(sweep: LetterSweep) {
  const timer = setTimeout(() => sweep.abort(), LONGEST_MS)
  try {
    return await sweep.finished
  } finally {
    clearTimeout(timer)
  }
}
