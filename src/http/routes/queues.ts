import { z } from 'zod'
import { definedOnly } from '../../defined-only.ts'
import type { Queue } from '../../engine/queue.ts'
import { levels } from '../../store/names.ts'
import type { QueueCounts } from '../../store/scripts/read-counts.ts'
import { type App, type Context, callerOf, canSee, queueOf } from '../context.ts'
import { instant, levelFlags, queueParam } from '../fields.ts'
import { operators, readers } from '../roles.ts'
import type { ShapeOf } from '../view-shape.ts'

const count = z.number()

const counts = z
  .object({
    waiting: count,
    delayed: count,
    running: count,
    submitted: count.optional(),
    claimed: count.optional(),
    succeeded: count.optional(),
    failed: count.optional(),
    canceled: count.optional(),
    retried: count.optional(),
    throttled: count.optional(),
    stalled: count.optional(),
    returned: count.optional(),
    released: count.optional(),
    unknownType: count.optional(),
    parked: count.optional(),
    unparked: count.optional(),
    promoted: count.optional(),
    deadLettersExpired: count.optional(),
    deadLettersRetried: count.optional(),
    deadLettersDiscarded: count.optional(),
    ticks: count.optional(),
    ticksMissed: count.optional(),
    audits: count.optional(),
    differences: count.optional(),
  } satisfies ShapeOf<QueueCounts>)
  .meta({ description: 'Over all tenants; for the key of a tenant its own jobs only.' })

const congestion = z.object({
  enabled: z.boolean(),
  baseBackoffMs: z.number(),
  maxBackoffMs: z.number(),
  snapshotMs: z.number(),
  retentionMs: z.number(),
})

const fairness = z.object({ quantum: z.number(), alpha: z.number(), maxProgressMs: z.number(), maxWaitMs: z.number() })

const queueView = z
  .object({
    name: z.string(),
    paused: z.boolean(),
    pausedSince: instant.optional(),
    levelsPaused: levelFlags,
    fairness,
    congestion,
    counts,
  })
  .meta({
    examples: [
      {
        name: 'mail',
        paused: false,
        levelsPaused: { high: false, normal: false, low: true },
        fairness: { quantum: 4, alpha: 0, maxProgressMs: 60000, maxWaitMs: 60000 },
        congestion: {
          enabled: true,
          baseBackoffMs: 1000,
          maxBackoffMs: 120000,
          snapshotMs: 10000,
          retentionMs: 3600000,
        },
        counts: { waiting: 17, delayed: 0, running: 10, submitted: 1027, succeeded: 1000 },
      },
    ],
  })

const queueChange = z
  .strictObject({
    paused: z.boolean().optional().meta({ description: 'Whether any job of the queue may start.' }),
    levelsPaused: z
      .strictObject({ high: z.boolean().optional(), normal: z.boolean().optional(), low: z.boolean().optional() })
      .optional(),
    fairness: z
      .strictObject({
        quantum: z.number().int().min(1).max(10_000).optional(),
        alpha: z.number().min(-1e9).max(1e9).optional(),
        maxProgressMs: z.number().int().min(0).max(86_400_000).optional(),
        maxWaitMs: z.number().int().min(0).max(86_400_000).optional(),
      })
      .optional(),
    congestion: z
      .strictObject({
        enabled: z.boolean().optional(),
        baseBackoffMs: z.number().int().min(1).max(86_400_000).optional(),
        maxBackoffMs: z.number().int().min(1).max(86_400_000).optional(),
        snapshotMs: z.number().int().min(1_000).max(86_400_000).optional(),
        retentionMs: z.number().int().min(1_000).max(2_592_000_000).optional(),
      })
      .optional()
      .meta({ description: 'What a backlog means in time, and how long jobs wait that were pushed back.' }),
  })
  .refine(
    (change) => Object.keys(change).length > 0,
    'must have at least one of paused, levelsPaused, fairness, congestion',
  )
  .meta({ examples: [{ levelsPaused: { low: true }, fairness: { maxWaitMs: 30000 } }] })

async function viewOf(queue: Queue, tenant: string | undefined): Promise<z.infer<typeof queueView>> {
  const [view, inAll] = await Promise.all([queue.view(), tenant === undefined ? queue.counts() : undefined])
  const { pausedSince, levelsPausedSince, quantum, alpha, maxProgressMs, maxWaitMs } = view
  const isPaused = levels.map((level) => [level, levelsPausedSince[level] !== undefined])
  return {
    name: queue.name,
    paused: pausedSince !== undefined,
    pausedSince,
    levelsPaused: Object.fromEntries(isPaused) as z.infer<typeof levelFlags>,
    fairness: { quantum, alpha, maxProgressMs, maxWaitMs },
    congestion: view.congestion,
    counts: inAll ?? (await ownCounts(queue, tenant ?? '')),
  }
}

async function ownCounts(queue: Queue, tenant: string) {
  const { waiting, delayed, running } = await queue.tenant(tenant).view()
  return { waiting, delayed, running }
}

async function change(queue: Queue, wanted: z.infer<typeof queueChange>): Promise<void> {
  // First, because it alone can still be refused.
  const { fairness: shares, congestion: backoffs } = wanted
  if (shares || backoffs) {
    const changes = definedOnly(shares ?? {})
    await queue.change(backoffs ? { ...changes, congestion: definedOnly(backoffs) } : changes)
  }
  if (wanted.paused !== undefined) await (wanted.paused ? queue.pause() : queue.resume())
  for (const level of levels) {
    const paused = wanted.levelsPaused?.[level]
    if (paused !== undefined) await (paused ? queue.pause({ level }) : queue.resume({ level }))
  }
}

export function addQueueRoutes(app: App, context: Context): void {
  const params = z.strictObject({ queue: queueParam })
  app.route({
    method: 'GET',
    url: '/v1/queues',
    config: { access: readers },
    schema: {
      operationId: 'listQueues',
      tags: ['queues'],
      summary: 'Lists the queues of this server.',
      querystring: z.strictObject({}),
      response: {
        200: z.object({ queues: z.array(z.object({ name: z.string() })) }).meta({
          examples: [{ queues: [{ name: 'mail' }] }],
        }),
      },
    },
    handler: (request) => {
      const names = [...context.queues.keys()].filter((name) => canSee(callerOf(request), name))
      return { queues: names.map((name) => ({ name })) }
    },
  })
  app.route({
    method: 'GET',
    url: '/v1/queues/:queue',
    config: { access: readers },
    schema: {
      operationId: 'getQueue',
      tags: ['queues'],
      summary: 'Shows a queue: counts, pauses and how it shares.',
      params,
      querystring: z.strictObject({}),
      response: { 200: queueView },
    },
    handler: (request) => viewOf(queueOf(context, request, request.params.queue), callerOf(request).tenant),
  })
  app.route({
    method: 'PATCH',
    url: '/v1/queues/:queue',
    config: { access: operators },
    schema: {
      operationId: 'changeQueue',
      tags: ['queues'],
      summary: 'Pauses or resumes a queue or its levels, and changes how it shares, on all workers at once.',
      params,
      querystring: z.strictObject({}),
      body: queueChange,
      response: { 200: queueView },
    },
    handler: async (request) => {
      const queue = queueOf(context, request, request.params.queue)
      await change(queue, request.body)
      return viewOf(queue, undefined)
    },
  })
}
