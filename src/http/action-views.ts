import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Action } from '../engine/actions/action.ts'
import type { ActionSummary, ActionView } from '../engine/actions/action-view.ts'
import { type Context, callerOf, canSee, mayTouch } from './context.ts'
import { instant, level } from './fields.ts'
import { notFound } from './problem.ts'
import type { ShapeOf } from './view-shape.ts'

const state = z.enum(['CREATED', 'DISPATCHED', 'RUNNING', 'AGGREGATING', 'COMPLETED', 'FAILED', 'CANCELED'])

const counts = z.object({
  total: z.number(),
  waiting: z.number(),
  running: z.number(),
  delayed: z.number(),
  succeeded: z.number(),
  failed: z.number(),
  canceled: z.number(),
})

export const exampleAction = {
  id: 'mail:acme:summer-sale',
  queue: 'mail',
  tenant: 'acme',
  name: 'summer-sale',
  type: 'SEND',
  level: 'normal',
  state: 'RUNNING',
  isSealed: true,
  received: 1000,
  counts: { total: 1000, waiting: 690, running: 10, delayed: 0, succeeded: 299, failed: 1, canceled: 0 },
  keepResults: true,
  failFast: false,
  createdAt: 1768000000000,
  startedAt: 1768000000020,
  perSecond: 50,
  etaMs: 14000,
}

export const actionView = z
  .object({
    id: z.string().meta({ description: 'Names its place: `<queue>:<tenant>:<name>`.' }),
    queue: z.string(),
    tenant: z.string(),
    name: z.string(),
    type: z.string().optional(),
    level,
    state,
    isSealed: z.boolean().meta({ description: 'Nothing more is added: it ends when its last job has ended.' }),
    received: z.number().meta({ description: 'Jobs that producers have sent so far, known ids included.' }),
    counts,
    keepResults: z.boolean(),
    failFast: z.boolean(),
    maxFailureRatio: z.number().optional(),
    createdAt: instant,
    startedAt: instant.optional(),
    endedAt: instant.optional(),
    perSecond: z.number().meta({ description: 'Jobs that ended per second, lately.' }),
    etaMs: z.number().optional(),
  } satisfies ShapeOf<ActionView>)
  .meta({ examples: [exampleAction] })

export const actionSummary = z
  .object({
    id: z.string(),
    state,
    counts,
    durationMs: z.object({ p50: z.number(), p95: z.number(), p99: z.number() }).optional(),
    attempts: z.number(),
    throttles: z.number(),
    errors: z.array(z.object({ message: z.string(), count: z.number(), exampleId: z.string() })),
    firstStartAt: instant.optional(),
    lastEndAt: instant.optional(),
    aggregate: z.unknown().optional(),
    aggregateError: z.string().optional(),
  } satisfies ShapeOf<ActionSummary>)
  .meta({
    examples: [
      {
        id: 'mail:acme:summer-sale',
        state: 'COMPLETED',
        counts: { total: 1000, waiting: 0, running: 0, delayed: 0, succeeded: 999, failed: 1, canceled: 0 },
        durationMs: { p50: 18, p95: 41, p99: 77 },
        attempts: 1004,
        throttles: 0,
        errors: [{ message: 'no such mailbox', count: 1, exampleId: 'order-17' }],
        firstStartAt: 1768000000020,
        lastEndAt: 1768000020020,
      },
    ],
  })

/** The action of this id, as far as the caller may know of it; whether it exists is seen when it is looked at. */
export function actionOf(context: Context, request: FastifyRequest, id: string): Action {
  const action = context.settings.sluice.action(id)
  const isVisible =
    action !== undefined &&
    context.queues.has(action.queue) &&
    canSee(callerOf(request), action.queue) &&
    mayTouch(request, action.tenant)
  if (!isVisible) throw noAction(id)
  return action
}

export async function viewOf(action: Action): Promise<z.infer<typeof actionView>> {
  const view = await action.view()
  if (!view) throw noAction(action.id)
  return view
}

export function noAction(id: string) {
  return notFound(`action ${JSON.stringify(id)}, or not any more`)
}

export function placeOf(action: { readonly id: string }): string {
  return `/v1/actions/${encodeURIComponent(action.id)}`
}
