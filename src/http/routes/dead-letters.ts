import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { DeadLetter } from '../../engine/dead-letters.ts'
import { letterPage } from '../../engine/letter-page.ts'
import type { Queue } from '../../engine/queue.ts'
import { parseJobKey } from '../../store/job-place.ts'
import { LONGEST_PLACE, placePattern } from '../../store/letter-place.ts'
import { deadReasons } from '../../store/reasons.ts'
import { checkBuiltIn } from '../built-in-check.ts'
import { type App, type Context, callerOf, mayTouch, queueOf, tenantOf } from '../context.ts'
import {
  actionName,
  cursorParam,
  done,
  instant,
  jobError,
  jobType,
  letterKeyParam,
  level,
  limitParam,
  nextCursor,
  queueParam,
  tenantName,
} from '../fields.ts'
import { notFound } from '../problem.ts'
import { readers, submitters } from '../roles.ts'
import type { ShapeOf } from '../view-shape.ts'

/** With a filter a page may have to look at many letters to find few: this many at most, and it says how many. */
const MOST_LOOKED_AT = 2_000

const letterFields = z.object({
  key: z.string().meta({ description: 'Names the letter.' }),
  id: z.string(),
  tenant: z.string(),
  level,
  lane: z.string(),
  action: z.string().optional().meta({ description: 'Name of the action it was submitted with.' }),
  type: z.string(),
  payload: z.unknown(),
  // Not an enum: a newer version may have written another, and a letter that is shown oddly beats an error.
  reason: z.string().meta({ description: `One of ${deadReasons.map((reason) => `\`${reason}\``).join(', ')}.` }),
  error: jobError.optional(),
  attempts: z.number(),
  createdAt: instant,
  diedAt: instant,
} satisfies ShapeOf<DeadLetter>)

const pageView = z
  .object({
    letters: z.array(letterFields),
    total: z
      .number()
      .optional()
      .meta({ description: 'All there are, whatever the filter; not for the key of a tenant.' }),
    looked: z.number().meta({ description: 'How many letters this page looked at to find these.' }),
    cursor: nextCursor,
  })
  .meta({
    examples: [
      {
        letters: [
          {
            key: 'normal:default:1768000000000042:acme',
            id: 'order-17',
            tenant: 'acme',
            level: 'normal',
            lane: 'default',
            type: 'SEND',
            payload: { to: 'a@example.com' },
            reason: 'failed',
            error: { name: 'Error', message: 'no such mailbox' },
            attempts: 4,
            createdAt: 1768000000000,
            diedAt: 1768000009000,
          },
        ],
        total: 1,
        looked: 1,
      },
    ],
  })

const errorText = z
  .string()
  .min(1)
  .max(1_000)
  .regex(/^\P{Cc}*$/u, 'must have no control characters')
  .meta({ description: 'Text in the message of the error.' })

const edited = z
  .strictObject({ payload: z.unknown().optional().meta({ description: 'Instead of its own.' }) })
  .meta({ examples: [{ payload: { to: 'b@example.com' } }] })

interface Filter {
  readonly tenant: string | undefined
  readonly reason: string | undefined
  readonly type: string | undefined
  readonly action: string | undefined
  /** Text in the message of its error. */
  readonly error: string | undefined
}

function fits(letter: DeadLetter, { tenant, reason, type, action, error }: Filter): boolean {
  return (
    (tenant === undefined || letter.tenant === tenant) &&
    (reason === undefined || letter.reason === reason) &&
    (type === undefined || letter.type === type) &&
    (action === undefined || letter.action === action) &&
    (error === undefined || letter.error?.message.includes(error) === true)
  )
}

export function addDeadLetterRoutes(app: App, context: Context): void {
  const oneLetter = {
    params: z.strictObject({ queue: queueParam, letter: letterKeyParam }),
    querystring: z.strictObject({}),
    response: { 200: done.meta({ examples: [{ done: true }] }) },
  }
  /** A letter of another tenant is answered like one that is not there. */
  async function act(
    request: FastifyRequest & { params: z.infer<typeof oneLetter.params> },
    change: (queue: Queue, key: string) => Promise<boolean>,
  ) {
    const { letter } = request.params
    const queue = queueOf(context, request, request.params.queue)
    const tenant = parseJobKey(letter)?.tenant
    const isDone = tenant !== undefined && mayTouch(request, tenant) && (await change(queue, letter))
    if (!isDone) throw notFound('such dead letter')
    return { done: true as const }
  }
  app.route({
    method: 'GET',
    url: '/v1/queues/:queue/dead-letters',
    config: { access: readers },
    schema: {
      operationId: 'listDeadLetters',
      tags: ['dead letters'],
      summary: 'Lists dead letters, newest first.',
      description: `With a filter, a page looks at no more than ${MOST_LOOKED_AT} letters and says how many it looked at; go on with its cursor.`,
      params: z.strictObject({ queue: queueParam }),
      querystring: z.strictObject({
        limit: limitParam,
        cursor: cursorParam((cursor) => placePattern.test(cursor), LONGEST_PLACE),
        tenant: tenantName.optional().meta({ description: 'Only of this tenant.' }),
        reason: z.enum(deadReasons).optional(),
        type: jobType.optional().meta({ description: 'Only of this type of job.' }),
        action: actionName.optional().meta({ description: 'Only of this action.' }),
        error: errorText.optional(),
      }),
      response: { 200: pageView },
    },
    handler: async (request) => {
      const queue = queueOf(context, request, request.params.queue)
      const { limit, cursor, reason, type, action, error } = request.query
      const filter = { tenant: tenantOf(request, request.query.tenant), reason, type, action, error }
      const hasFilter = Object.values(filter).some((value) => value !== undefined)
      const { total, ...page } = await letterPage(
        queue,
        { cursor, limit, mostLooked: MOST_LOOKED_AT },
        hasFilter ? (letter) => fits(letter, filter) : undefined,
      )
      return callerOf(request).tenant === undefined ? { ...page, total } : page
    },
  })
  app.route({
    method: 'POST',
    url: '/v1/queues/:queue/dead-letters/:letter/retry',
    config: { access: submitters },
    schema: {
      operationId: 'retryDeadLetter',
      tags: ['dead letters'],
      summary: 'Puts the job of a dead letter back in line, as if fresh; with another payload where one is given.',
      ...oneLetter,
      body: edited,
    },
    // Most send none.
    preValidation: async (request) => {
      if (request.headers['content-type'] === undefined) request.body ??= {}
    },
    handler: (request) => {
      const { body } = request
      return act(request, async (queue, key) => {
        if (!('payload' in body)) return queue.deadLetters.retry(key)
        const { payload } = body
        const { type } = (await queue.job(key)) ?? {}
        checkBuiltIn({ payload }, type)
        return queue.deadLetters.retry(key, { payload })
      })
    },
  })
  app.route({
    method: 'DELETE',
    url: '/v1/queues/:queue/dead-letters/:letter',
    config: { access: submitters },
    schema: {
      operationId: 'discardDeadLetter',
      tags: ['dead letters'],
      summary: 'Discards a dead letter for good.',
      ...oneLetter,
    },
    handler: (request) => act(request, (queue, key) => queue.deadLetters.discard(key)),
  })
}
