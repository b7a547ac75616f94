import { z } from 'zod'
import type { QueueOverview, TenantOverview } from '../../engine/overview.ts'
import type { WorkerView } from '../../store/worker-list.ts'
import { backlogFields, congestionLevel, exampleBacklog } from '../backlog-fields.ts'
import { type App, type Context, queueOf } from '../context.ts'
import { instant, level, levelFlags, limitStatus, queueParam } from '../fields.ts'
import { overseers } from '../roles.ts'
import type { ShapeOf } from '../view-shape.ts'

const count = z.number()

const worker = z.object({
  client: z.string().meta({ description: 'Unique for each start of a process.' }),
  pid: z.number(),
  running: count.meta({ description: 'Jobs it holds.' }),
  since: instant.optional().meta({ description: 'When it claimed the oldest of them.' }),
  leasedUntil: instant.optional(),
  isIdle: z.boolean().meta({ description: 'Whether it waits for more than it has.' }),
} satisfies ShapeOf<WorkerView>)

const tenant = z.object({
  tenant: z.string(),
  state: z.enum(['ready', 'parked', 'paused', 'idle']),
  parkedBy: z.string().optional(),
  parkedUntil: instant.optional(),
  weight: z.number(),
  basePriority: z.number(),
  levelOverride: level.optional(),
  waiting: count,
  delayed: count,
  running: count,
  longestWaitMs: z.number(),
  level: congestionLevel,
  speed: z.number().meta({ description: 'Starts a second.' }),
  etaMs: z.number().meta({ description: 'Until all that waits has started.' }),
} satisfies ShapeOf<TenantOverview>)

const overview = z
  .object({
    at: instant,
    name: z.string(),
    paused: z.boolean(),
    levelsPaused: levelFlags,
    counts: z.record(z.string(), count),
    backlog: z.object({ ...backlogFields, activeTenants: count }),
    limits: z.array(limitStatus),
    workers: z.array(worker),
    tenants: z.array(tenant).meta({ description: 'Those that have longest to wait first, then others that run.' }),
  } satisfies ShapeOf<QueueOverview>)
  .meta({
    examples: [
      {
        at: 1768000000000,
        name: 'mail',
        paused: false,
        levelsPaused: { high: false, normal: false, low: true },
        counts: { waiting: 500, delayed: 0, running: 10, submitted: 1510, succeeded: 1000 },
        backlog: { ...exampleBacklog, activeTenants: 1 },
        limits: [],
        workers: [{ client: 'a1-0f0f0f0f0f0f-pool', pid: 361, running: 10, isIdle: false }],
        tenants: [
          {
            tenant: 'acme',
            state: 'ready',
            weight: 1,
            basePriority: 0,
            waiting: 500,
            delayed: 0,
            running: 10,
            longestWaitMs: 12,
            level: 'MODERATE',
            speed: 100,
            etaMs: 5000,
          },
        ],
      },
    ],
  })

export function addOverviewRoutes(app: App, context: Context): void {
  app.route({
    method: 'GET',
    url: '/v1/queues/:queue/overview',
    config: { access: overseers },
    schema: {
      operationId: 'getOverview',
      tags: ['queues'],
      summary: 'Shows a queue at one moment: counts, backlog, limits, workers, and the tenants that matter now.',
      params: z.strictObject({ queue: queueParam }),
      querystring: z.strictObject({
        tenants: z
          .string()
          .regex(/^\d{1,3}$/, 'must be a whole number from 1 to 128')
          .transform(Number)
          .refine((most) => most >= 1 && most <= 128, 'must be a whole number from 1 to 128')
          .default(50)
          .meta({ type: 'integer', minimum: 1, maximum: 128, default: 50, description: 'At most this many tenants.' }),
      }),
      response: { 200: overview },
    },
    handler: async (request) => {
      const found = await queueOf(context, request, request.params.queue).overview(request.query)
      const { counts, limits, workers, tenants } = found
      return {
        ...found,
        counts: { ...counts },
        limits: [...limits],
        workers: [...workers],
        tenants: [...tenants],
      }
    },
  })
}
