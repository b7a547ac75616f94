import { z } from 'zod'
import { definedOnly } from '../../defined-only.ts'
import { parseDuration } from '../../engine/duration.ts'
import type { Queue } from '../../engine/queue.ts'
import {
  longestScheduleName,
  problemOfScheduleName,
  type ScheduleInput,
} from '../../engine/schedules/schedule-input.ts'
import type { ScheduleView } from '../../engine/schedules/schedule-view.ts'
import { isScheduleCursor } from '../../engine/schedules/schedules.ts'
import { checkBuiltIn } from '../built-in-check.ts'
import { type App, type Context, queueOf } from '../context.ts'
import {
  cursorParam,
  done,
  instant,
  jobType,
  level,
  limitParam,
  nextCursor,
  queueParam,
  tenantName,
} from '../fields.ts'
import { notFound } from '../problem.ts'
import { operators, overseers } from '../roles.ts'
import type { ShapeOf } from '../view-shape.ts'
import { jobFields } from './jobs.ts'

const scheduleParam = z
  .string()
  .superRefine((value, context) => {
    const problem = problemOfScheduleName(value)
    if (problem) context.addIssue({ code: 'custom', message: problem, input: value })
  })
  .meta({ minLength: 1, maxLength: longestScheduleName, description: 'Name of a schedule.', examples: ['nightly'] })

const missed = z.enum(['one', 'all', 'skip']).meta({
  description: 'Of ticks that passed unmet: make up for the latest, for all (the latest 1,000), or for none.',
})

const job = z
  .strictObject({
    type: jobType,
    payload: z.unknown().optional().meta({ description: 'Anything JSON can hold.' }),
    tenant: tenantName.optional().meta({ description: 'Whom it is for; `default` unless given.' }),
    level: level.optional(),
    lane: z.string().min(1).max(256).optional(),
    ordered: z.boolean().optional(),
    cost: jobFields.cost,
    maxRetries: jobFields.maxRetries,
    timeoutMs: jobFields.timeoutMs,
  })
  .meta({ description: 'The job of every tick; its id is `<schedule>@<tick>`.' })

/** The engine checks patterns, zones and times, and better: by meaning. */
const scheduleInput = z
  .strictObject({
    cron: z.string().max(200).optional().meta({ description: 'Five fields, six with seconds first, or `@daily`.' }),
    timeZone: z.string().max(100).optional().meta({ description: 'Whose clocks `cron` means; UTC unless given.' }),
    every: z
      .union([z.number(), z.string().max(20)])
      .optional()
      .meta({ description: 'Elapsed time: ms, or text such as `15m`.' }),
    anchor: z
      .union([z.number(), z.string().max(40)])
      .optional()
      .meta({ description: 'An instant from which `every` is counted: ms since 1970, or text with its zone.' }),
    missed: missed.optional(),
    job,
  })
  .meta({
    examples: [{ cron: '0 3 * * *', timeZone: 'Europe/Berlin', job: { type: 'SEND', tenant: 'acme', payload: {} } }],
  })

const example = {
  name: 'nightly',
  cron: '0 3 * * *',
  timeZone: 'Europe/Berlin',
  missed: 'one',
  job: { type: 'SEND', tenant: 'acme', payload: {} },
  nextAt: 1_768_010_400_000,
  lastAt: 1_767_924_000_000,
  ticks: 17,
  missedTicks: 0,
}

const scheduleView = z
  .object({
    name: z.string(),
    cron: z.string().optional(),
    timeZone: z.string().optional(),
    everyMs: z.number().optional(),
    anchor: instant.optional(),
    missed,
    job: z.record(z.string(), z.unknown()),
    nextAt: instant.optional().meta({ description: 'Its next tick, in ms since 1970; missing while it is paused.' }),
    lastAt: instant.optional().meta({ description: 'The last tick a job was made for.' }),
    pausedSince: instant.optional(),
    ticks: z.number().meta({ description: 'How many ticks jobs were made for.' }),
    missedTicks: z.number().meta({ description: 'How many got none.' }),
  } satisfies ShapeOf<ScheduleView>)
  .meta({ examples: [example] })

const dueWithinParam = z
  .string()
  .transform((text, context) => {
    const ms = parseDuration(text)
    if (ms === undefined || ms > 366 * 86_400_000) {
      context.addIssue({ code: 'custom', message: 'must be a time such as 60s, 5m or 1h, at most 366d', input: text })
    }
    return ms ?? 0
  })
  .optional()
  .meta({ type: 'string', description: 'Only what is due this soon: `60s`, `5m`, `1h`.' })

async function viewOf(queue: Queue, name: string) {
  const view = await queue.schedules.get(name)
  if (!view) throw notFound(`schedule ${JSON.stringify(name)}`)
  return { ...view, job: { ...view.job } }
}

export function addScheduleRoutes(app: App, context: Context): void {
  addReading(app, context)
  addChanging(app, context)
}

function addReading(app: App, context: Context): void {
  app.route({
    method: 'GET',
    url: '/v1/queues/:queue/schedules',
    config: { access: overseers },
    schema: {
      operationId: 'listSchedules',
      tags: ['schedules'],
      summary: 'Lists schedules by when they are due, paused ones last, and counts what is due soon.',
      params: z.strictObject({ queue: queueParam }),
      querystring: z.strictObject({
        dueWithin: dueWithinParam,
        limit: limitParam,
        cursor: cursorParam(isScheduleCursor, 2_000),
      }),
      response: {
        200: z
          .object({
            schedules: z.array(scheduleView),
            total: z.number(),
            dueSoon: z.number().meta({ description: 'How many are due within `dueWithin`, or a minute.' }),
            nextAt: instant.optional().meta({ description: 'When the first is due, in ms since 1970.' }),
            cursor: nextCursor,
          })
          .meta({ examples: [{ schedules: [example], total: 1, dueSoon: 0, nextAt: example.nextAt }] }),
      },
    },
    handler: async (request) => {
      const queue = queueOf(context, request, request.params.queue)
      const { dueWithin: dueWithinMs, limit, cursor } = request.query
      const { schedules, ...page } = await queue.schedules.list(definedOnly({ dueWithinMs, limit, cursor }))
      return { schedules: schedules.map((view) => ({ ...view, job: { ...view.job } })), ...page }
    },
  })
  app.route({
    method: 'GET',
    url: '/v1/queues/:queue/schedules/:schedule',
    config: { access: overseers },
    schema: {
      operationId: 'getSchedule',
      tags: ['schedules'],
      summary: 'Shows a schedule: when it is due, its job, and what it has counted.',
      params: z.strictObject({ queue: queueParam, schedule: scheduleParam }),
      querystring: z.strictObject({}),
      response: { 200: scheduleView },
    },
    handler: (request) => viewOf(queueOf(context, request, request.params.queue), request.params.schedule),
  })
}

function addChanging(app: App, context: Context): void {
  const params = z.strictObject({ queue: queueParam, schedule: scheduleParam })
  const shared = { tags: ['schedules'], params, querystring: z.strictObject({}) }
  const url = '/v1/queues/:queue/schedules/:schedule'
  app.route({
    method: 'PUT',
    url,
    config: { access: operators },
    schema: {
      ...shared,
      operationId: 'setSchedule',
      summary: 'Makes a schedule, or changes it at once; the same again changes nothing.',
      body: scheduleInput,
      response: { 200: scheduleView, 201: scheduleView },
    },
    handler: async (request, reply) => {
      const queue = queueOf(context, request, request.params.queue)
      checkBuiltIn(request.body.job, undefined)
      const input = definedOnly({ ...request.body, job: definedOnly(request.body.job) }) as ScheduleInput
      const { result, schedule } = await queue.schedules.set(request.params.schedule, input)
      return reply.code(result === 'created' ? 201 : 200).send({ ...schedule, job: { ...schedule.job } })
    },
  })
  app.route({
    method: 'PATCH',
    url,
    config: { access: operators },
    schema: {
      ...shared,
      operationId: 'pauseSchedule',
      summary: 'Pauses or resumes a schedule; ticks that pass while it is paused are not missed.',
      body: z.strictObject({ paused: z.boolean() }).meta({ examples: [{ paused: true }] }),
      response: { 200: scheduleView },
    },
    handler: async (request) => {
      const queue = queueOf(context, request, request.params.queue)
      const name = request.params.schedule
      await (request.body.paused ? queue.schedules.pause(name) : queue.schedules.resume(name))
      return viewOf(queue, name)
    },
  })
  app.route({
    method: 'DELETE',
    url,
    config: { access: operators },
    schema: {
      ...shared,
      operationId: 'removeSchedule',
      summary: 'Removes a schedule; jobs it has made stay.',
      response: { 200: done.meta({ examples: [{ done: true }] }) },
    },
    handler: async (request) => {
      const queue = queueOf(context, request, request.params.queue)
      const wasThere = await queue.schedules.remove(request.params.schedule)
      if (!wasThere) throw notFound(`schedule ${JSON.stringify(request.params.schedule)}`)
      return { done: true as const }
    },
  })
  app.route({
    method: 'POST',
    url: `${url}/run`,
    config: { access: operators },
    schema: {
      ...shared,
      operationId: 'runSchedule',
      summary: 'Makes a job of the schedule at once, besides those of its ticks.',
      response: {
        201: z
          .object({ id: z.string(), isNew: z.boolean() })
          .meta({ examples: [{ id: 'nightly@2026-03-29T10:00:00.000Z#1f2e3d4c', isNew: true }] }),
      },
    },
    handler: async (request, reply) => {
      const queue = queueOf(context, request, request.params.queue)
      return reply.code(201).send(await queue.schedules.runNow(request.params.schedule))
    },
  })
}
