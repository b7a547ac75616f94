import { z } from 'zod'
import type { Explanation, Gate } from '../engine/explain/explanation.ts'
import { instant, level } from './fields.ts'
import type { ShapeOf } from './view-shape.ts'

const gateNames = [
  'queue',
  'level',
  'tenant',
  'work',
  'action',
  'job',
  'lane',
  'parked',
  'limit',
  'turn',
  'workers',
] as const

/** All fields that one or other of several kinds has. */
type EveryField<Kind> = { [Field in Kind extends unknown ? keyof Kind : never]: unknown }

/** One gate. Which fields it has beside the first five depends on what it is. */
const gate = z.object({
  gate: z.enum(gateNames),
  open: z.boolean().meta({ description: 'Whether it lets work pass now.' }),
  since: instant.optional(),
  until: instant.optional().meta({ description: 'When it opens by itself, if that is known.' }),
  text: z.string(),
  level: level.optional(),
  action: z.string().optional(),
  state: z.string().optional().meta({ description: 'Of a job, or of an action.' }),
  isSealed: z.boolean().optional(),
  reason: z.string().optional().meta({
    description: '`limit`, `upstream`, `retry`, `scheduled`, `unknown-type`, `stall`; of a dead letter its own.',
  }),
  client: z.string().optional(),
  fence: z.string().optional(),
  leaseUntil: instant.optional(),
  attempts: z.number().optional(),
  lane: z.string().optional(),
  ahead: z.number().optional().meta({ description: 'Jobs of its lane that go first.' }),
  lanes: z.number().optional(),
  lanesBefore: z.number().optional(),
  busyWith: z.array(z.string()).optional().meta({ description: 'Jobs that ordered lanes wait for.' }),
  scope: z.string().optional(),
  name: z.string().optional(),
  kind: z.string().optional(),
  limit: z.union([z.number(), z.string()]).optional().meta({ description: 'Of a limit its size; of a park its name.' }),
  used: z.number().optional(),
  remaining: z.number().optional(),
  cost: z.number().optional().meta({ description: 'What the job asked about costs; of a tenant, its next one.' }),
  effectivePerSecond: z.number().optional().meta({ description: 'What a limit with a rate grants now.' }),
  isEstimated: z.boolean().optional().meta({ description: 'Part of what is used was assumed.' }),
  place: z.number().optional().meta({ description: '1 is next.' }),
  inLine: z.number().optional(),
  score: z.number().optional(),
  overdue: z.boolean().optional(),
  waiting: z.number().optional(),
  delayed: z.number().optional(),
  running: z.number().optional(),
  idle: z.number().optional(),
  busy: z.number().optional(),
  lastClaimAt: instant.optional(),
} satisfies ShapeOf<EveryField<Gate>>)

export const explanationView = z
  .object({
    tenant: z.string(),
    job: z.string().optional(),
    level: level.optional(),
    at: instant.meta({ description: 'The moment this was true, by the clock of Redis.' }),
    text: z.string().meta({ description: 'The answer in one line.' }),
    binds: gate.optional().meta({ description: 'The first gate that says no; missing: nothing holds it back.' }),
    since: instant.optional(),
    mayRunAt: instant
      .optional()
      .meta({ description: 'When all that say no will have opened by themselves, if known.' }),
    gates: z.array(gate),
  } satisfies ShapeOf<Explanation>)
  .meta({
    examples: [
      {
        tenant: 'acme',
        level: 'normal',
        at: 1768000000000,
        text: 'The tenant has been paused since 2026-01-09T23:06:40.000Z (1 min ago).',
        since: 1767999940000,
        gates: [
          { gate: 'queue', open: true, text: 'the queue is not paused' },
          {
            gate: 'tenant',
            open: false,
            since: 1767999940000,
            text: 'The tenant has been paused since 2026-01-09T23:06:40.000Z (1 min ago).',
          },
        ],
      },
    ],
  })

export type ExplanationView = z.infer<typeof explanationView>

/** As JSON can hold it: lists that may be changed. */
export function viewExplanation(explanation: Explanation): ExplanationView {
  return explanation as unknown as ExplanationView
}
