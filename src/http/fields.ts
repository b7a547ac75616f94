/** The fields that several routes share, each described once: what is allowed, what it means, and an example. */
import { z } from 'zod'
import type { LimitStatus } from '../engine/limit-status.ts'
import { levels, problemOfName } from '../store/names.ts'
import type { JobErrorRecord } from '../store/record.ts'
import { limitScopes } from '../store/settings.ts'
import type { ShapeOf } from './view-shape.ts'

const LONGEST_NAME = 256

/** A name or id of the caller's own choice, under the rules of the engine. */
function name(description: string, example: string) {
  return z
    .string()
    .min(1)
    .max(LONGEST_NAME)
    .superRefine((value, context) => {
      const problem = problemOfName(value)
      if (problem) context.addIssue({ code: 'custom', message: problem, input: value })
    })
    .meta({ description, examples: [example] })
}

export const queueParam = z
  .string()
  .min(1)
  .max(LONGEST_NAME)
  .meta({ description: 'Name of a queue.', examples: ['mail'] })
export const tenantName = name('Whom the work is for.', 'acme')
export const jobType = name('What kind of work it is; a processor of this name runs it.', 'SEND')
export const actionName = name('Name of an action, unique within queue and tenant.', 'summer-sale')
export const jobId = name('Id of a job: given by the caller, or generated.', 'order-17')
/** Generated ids and the keys of dead letters hold the names of a lane and a tenant. */
export const jobIdParam = z
  .string()
  .min(1)
  .max(4 * LONGEST_NAME)
  .meta({ description: 'Id of a job: given by the caller, or generated.', examples: ['order-17'] })
export const letterKeyParam = z
  .string()
  .min(1)
  .max(4 * LONGEST_NAME)
  .meta({
    description: 'Key of a dead letter, as the list shows it.',
    examples: ['normal:default:1768000000000042:acme'],
  })
export const actionIdParam = z
  .string()
  .min(1)
  .max(4 * LONGEST_NAME)
  .meta({ description: 'Id of an action.', examples: ['mail:acme:summer-sale'] })

export const level = z.enum(levels).meta({ description: 'Where the work stands: high before normal before low.' })
export const levelFlags = z.object({ high: z.boolean(), normal: z.boolean(), low: z.boolean() })
export const limitScope = z.enum(limitScopes).meta({ description: 'What the limit is attached to.' })
export const instant = z.number().meta({ description: 'ms since 1970.' })

/** A whole number in a query string: digits and nothing else, where a plain conversion would take "", " 7 " and "0x7". */
export function countParam(range: { min: number; max: number; default: number; description: string }) {
  const { min: minimum, max: maximum, default: value, description } = range
  return z
    .string()
    .regex(/^\d{1,9}$/, `must be a whole number from ${minimum} to ${maximum}`)
    .transform(Number)
    .refine((count) => count >= minimum && count <= maximum, `must be a whole number from ${minimum} to ${maximum}`)
    .default(value)
    .meta({ type: 'integer', minimum, maximum, default: value, description })
}

export function flagParam(description: string) {
  return z
    .enum(['true', 'false'])
    .transform((value) => value === 'true')
    .optional()
    .meta({ type: 'boolean', description })
}

export function cursorParam(isCursor: (cursor: string) => boolean, longest = 100) {
  return z
    .string()
    .max(longest)
    .refine(isCursor, 'must be the cursor of an earlier page')
    .optional()
    .meta({ description: 'Where the page begins: `cursor` of the page before it.' })
}

/** Headers that mean something to a route; of the others nothing is said. */
export function headers(known: Readonly<Record<string, string>>) {
  const fields = Object.entries(known).map(([name, description]) => [
    name,
    z.string().max(2_000).optional().meta({ description }),
  ])
  return z.looseObject(Object.fromEntries(fields) as Record<string, z.ZodOptional<z.ZodString>>)
}

export const nextCursor = z
  .string()
  .optional()
  .meta({ description: 'Where the next page begins; missing on the last one. A short page may have a next one.' })

export const limitParam = countParam({ min: 1, max: 500, default: 50, description: 'At most this many of them.' })

/**
 * The engine checks limits, and better: with paths and with what is allowed. The schema is for readers.
 */
export const limitDefinition = z.unknown().meta({
  description: 'A rate such as "500/s", or an object with a kind: bucket, window, quota or concurrency.',
  anyOf: [
    { type: 'string', pattern: '^\\d+ */ *\\d* *[a-z]+$' },
    {
      type: 'object',
      required: ['kind', 'limit', 'windowMs'],
      additionalProperties: false,
      properties: {
        kind: { const: 'bucket' },
        limit: { type: 'integer', minimum: 1 },
        windowMs: { type: 'integer', minimum: 1 },
        burst: { type: 'integer', minimum: 1 },
        jitterMs: { type: 'integer', minimum: 0, maximum: 1000 },
      },
    },
    {
      type: 'object',
      required: ['kind', 'limit', 'windowMs'],
      additionalProperties: false,
      properties: {
        kind: { const: 'window' },
        limit: { type: 'integer', minimum: 1 },
        windowMs: { type: 'integer', minimum: 100 },
        offsetMs: { type: 'integer', minimum: 0 },
        timeZone: { type: 'string' },
        jitterMs: { type: 'integer', minimum: 0, maximum: 1000 },
      },
    },
    {
      type: 'object',
      required: ['kind'],
      additionalProperties: false,
      properties: {
        kind: { const: 'quota' },
        threshold: { type: 'integer', minimum: 0 },
        pool: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 100 },
      },
    },
    {
      type: 'object',
      required: ['kind', 'max'],
      additionalProperties: false,
      properties: { kind: { const: 'concurrency' }, max: { type: 'integer', minimum: 1 } },
    },
  ],
})

export const limitStatus = z.object({
  name: z.string(),
  scope: limitScope,
  kind: z.enum(['bucket', 'window', 'quota', 'concurrency']),
  limit: z.number().meta({ description: 'Calls a window, jobs in flight, or what the upstream of a quota allows.' }),
  used: z.number(),
  isEstimated: z.boolean().meta({ description: 'Redis had lost what a window had counted: part of it was assumed.' }),
  remaining: z.number().meta({ description: 'What could be granted now.' }),
  resetAt: instant.optional(),
  closedUntil: instant.optional(),
  pushedBackUntil: instant.optional(),
  effectivePerSecond: z.number().optional(),
  jitterMs: z.number().optional(),
  activeTenants: z.number().optional().meta({ description: 'Not for the key of a tenant.' }),
  sharePerTenant: z.number(),
} satisfies ShapeOf<LimitStatus>)

export const jobError = z.object({
  name: z.string(),
  message: z.string(),
  stack: z.string().optional(),
} satisfies ShapeOf<JobErrorRecord>)

/** What is answered when there is nothing to say but that it was done. */
export const done = z.object({ done: z.literal(true) })
