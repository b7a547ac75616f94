import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { definedOnly } from '../../defined-only.ts'
import type { Action } from '../../engine/actions/action.ts'
import { type ActionInput, generatedActionName } from '../../engine/actions/action-input.ts'
import { withFirst } from '../../engine/actions/with-first.ts'
import type { Queue } from '../../engine/queue.ts'
import type { StoredAnswer } from '../../store/idempotency.ts'
import { actionOf, actionView, exampleAction, placeOf, viewOf } from '../action-views.ts'
import { isNdjson, NDJSON_TYPE } from '../body.ts'
import { checkedBuiltIns } from '../built-in-check.ts'
import { untilGone } from '../client-gone.ts'
import { type App, type Context, queueOf, submittingTenant } from '../context.ts'
import { actionIdParam, actionName, flagParam, headers, jobType, level, queueParam, tenantName } from '../fields.ts'
import { answerOnce, idempotencyKeyOf, requestDigest, send } from '../idempotency.ts'
import { JobCheck } from '../job-check.ts'
import { NdjsonReader } from '../ndjson.ts'
import { invalidField, Problem } from '../problem.ts'
import { submitters } from '../roles.ts'
import { brokenOff, uploadJobs } from '../upload.ts'
import { jobFields } from './jobs.ts'

/** More than that is a stream. */
const MOST_JOBS = 10_000
const YEAR_MS = 366 * 86_400_000

const webhookUrl = z.string().max(2_000).meta({ description: 'Told when the action ends.' })
const webhookSecret = z.string().max(200).meta({ description: '`whsec_` and 24 to 64 bytes in base64.' })

const actionBody = z
  .strictObject({
    tenant: tenantName.optional().meta({ description: 'Whom it is for; the key of a tenant needs not say it.' }),
    action: actionName.optional().meta({ description: 'Its name; generated unless given.' }),
    type: jobType.optional().meta({ description: 'Of jobs that do not name their own.' }),
    level: level.optional(),
    ordered: z.boolean().optional(),
    jobs: z.array(z.strictObject(jobFields)).max(MOST_JOBS),
    keepResults: z.boolean().optional(),
    failFast: z.boolean().optional(),
    maxFailureRatio: z.number().min(0).max(1).optional(),
    sealTimeoutMs: z.number().int().min(0).max(YEAR_MS).optional(),
    seal: z.boolean().optional().meta({ description: 'False leaves it open for more jobs.' }),
    webhook: z.strictObject({ url: webhookUrl, secret: webhookSecret }).optional(),
  })
  .meta({
    examples: [
      {
        tenant: 'acme',
        action: 'summer-sale',
        type: 'SEND',
        keepResults: true,
        jobs: [{ id: 'order-17', payload: { to: 'a@example.com' } }, { payload: { to: 'b@example.com' } }],
      },
    ],
  })

const ndjsonBody = z.any().meta({
  type: 'string',
  description: 'One job a line, to any length. Nothing of it is held: it is read as fast as the queue takes it.',
  examples: ['{"id":"order-17","payload":{"to":"a@example.com"}}\n{"payload":{"to":"b@example.com"}}\n'],
})

/** What the body says of the action when it is JSON, the query says when the body is the jobs. */
const actionQuery = z.strictObject({
  tenant: tenantName.optional().meta({ description: 'Whom it is for. With NDJSON only, as all of these.' }),
  action: actionName.optional().meta({ description: 'Its name; the Idempotency-Key unless given.' }),
  type: jobType.optional().meta({ description: 'Of jobs that do not name their own.' }),
  level: level.optional(),
  ordered: flagParam('One job at a time, in order.'),
  keepResults: flagParam('Keep what each job returns.'),
  failFast: flagParam('The first job that fails for good ends the action.'),
  maxFailureRatio: z
    .string()
    .regex(/^(0(\.\d{1,6})?|1(\.0{1,6})?)$/, 'must be a number from 0 to 1')
    .transform(Number)
    .optional()
    .meta({ type: 'number', minimum: 0, maximum: 1, description: 'More failed jobs than this share end the action.' }),
  sealTimeoutMs: z
    .string()
    .regex(/^\d{1,11}$/, `must be a whole number from 0 to ${YEAR_MS}`)
    .transform(Number)
    .refine((ms) => ms <= YEAR_MS, `must be a whole number from 0 to ${YEAR_MS}`)
    .optional()
    .meta({
      type: 'integer',
      minimum: 0,
      maximum: YEAR_MS,
      description: 'Seal it when nobody adds to it for so long.',
    }),
  seal: flagParam('False leaves it open for more jobs.'),
  webhookUrl: webhookUrl.optional().meta({
    description: 'Told when the action ends; its secret is the header Sluice-Webhook-Secret, since paths are logged.',
  }),
})

const submitted = z
  .object({
    ...actionView.shape,
    accepted: z.number().meta({ description: 'Jobs that this request stored.' }),
    duplicates: z.number().meta({ description: 'Jobs of this request whose ids were known.' }),
  })
  .meta({ examples: [{ ...exampleAction, state: 'DISPATCHED', accepted: 1000, duplicates: 0 }] })

async function answerOf(action: Action): Promise<StoredAnswer> {
  const { accepted, duplicates } = action
  const body = JSON.stringify({ ...(await viewOf(action)), accepted, duplicates })
  return { status: 202, body, location: placeOf(action) }
}

function requiredTenant(request: FastifyRequest, given: string | undefined, path: string): string {
  const tenant = submittingTenant(request, given)
  if (tenant === undefined) throw invalidField(path, 'is required: it says whom the action is for')
  return tenant
}

/** An action whose jobs are all there. Under an Idempotency-Key it is made once, and gone on with if that was broken off. */
async function submitBody(context: Context, request: FastifyRequest, reply: FastifyReply, queue: Queue) {
  if (Object.keys(request.query as object).length > 0) {
    const [name] = Object.keys(request.query as object)
    throw invalidField(`query.${name}`, 'is for NDJSON; with JSON it belongs into the body')
  }
  if (request.body === undefined) throw invalidField('body', 'is required: the action, or its jobs as NDJSON')
  const body = request.body as z.infer<typeof actionBody>
  const tenant = requiredTenant(request, body.tenant, 'body.tenant')
  const key = idempotencyKeyOf(request)
  // Under a key the action is this request's own: one of that name that another began is neither repeated nor gone on with.
  const begunBy = key === undefined ? undefined : requestDigest(request, key)
  const named = begunBy === undefined ? generatedActionName() : `key-${begunBy.slice(0, 24)}`
  const from = begunBy === undefined ? 'start' : 'accepted'
  const input = definedOnly({ ...body, tenant, action: body.action ?? named, from, begunBy }) as ActionInput
  const check = new JobCheck(tenant, body.type)
  for (const job of body.jobs) check.check(job)
  const perform = async () => {
    const action = queue.action(input.action ?? '', { tenant })
    const before = await action.view()
    try {
      const submitted = await queue.submit(input, { whenFull: 'error' })
      if (before?.isSealed) reply.header('idempotency-replayed', 'true')
      return await answerOf(submitted)
    } catch (error) {
      throw await brokenOff(request, { action, receivedBefore: before?.received }, error)
    }
  }
  return key === undefined ? send(reply, await perform()) : answerOnce(context, request, reply, key, perform)
}

function readerOf(context: Context, request: FastifyRequest): NdjsonReader {
  const { maxLineBytes, idleBodyMs: idleMs } = context.settings
  return new NdjsonReader(request.body as IncomingMessage, { maxLineBytes, idleMs, signal: context.isCut })
}

/** An action whose jobs stream in. Its name is the Idempotency-Key: a repeat goes on after what was accepted. */
async function submitStream(context: Context, request: FastifyRequest, reply: FastifyReply, queue: Queue) {
  const { webhookUrl: url, ...query } = request.query as z.infer<typeof actionQuery>
  const tenant = requiredTenant(request, query.tenant, 'query.tenant')
  const key = idempotencyKeyOf(request)
  if (key !== undefined && query.action !== undefined && key !== query.action) {
    throw invalidField(
      'query.action',
      'must be the Idempotency-Key where both are given: that is the name of the action',
    )
  }
  const secret = request.headers['sluice-webhook-secret']
  const webhook = url === undefined ? undefined : { url, secret: String(secret ?? '') }
  const name = key ?? query.action ?? generatedActionName()
  const known = queue.action(name, { tenant })
  const reader = readerOf(context, request)
  const from: 'start' | 'accepted' = key === undefined ? 'start' : 'accepted'
  const before = await known.view()
  const isRepeat = from === 'accepted' && before?.isSealed === true
  const upload = { action: known, reader, receivedBefore: before?.received }
  const signal = untilGone(reply, context.isCut)
  const action = await uploadJobs(request, reply, upload, async () => {
    if (isRepeat) return known
    const check = new JobCheck(tenant, query.type)
    const jobs = await withFirst(checkedBuiltIns(reader, query.type), (job) => check.check(job))
    if (reader.mistake !== undefined) throw reader.mistake
    // Sealed only when it is known that the body was whole.
    const options = definedOnly({ ...query, tenant, webhook, from, action: name, seal: false })
    return queue.submit({ ...options, jobs } as ActionInput, { whenFull: 'wait', signal })
  })
  if (isRepeat) reply.header('idempotency-replayed', 'true')
  else if (query.seal !== false) await action.seal()
  return send(reply, await answerOf(action))
}

export function addActionUploadRoutes(app: App, context: Context): void {
  app.route({
    method: 'POST',
    url: '/v1/queues/:queue/actions',
    config: { access: submitters, isStream: true },
    schema: {
      operationId: 'submitAction',
      tags: ['actions'],
      summary: 'Submits an action: as one body of JSON, or as NDJSON of jobs streamed to any length.',
      description:
        'With an Idempotency-Key a repeated request does nothing twice. With NDJSON the key is the name of the action, and a repeat goes on after the lines that were accepted.',
      params: z.strictObject({ queue: queueParam }),
      querystring: actionQuery,
      headers: headers({
        'idempotency-key': 'Makes a repeat harmless; with NDJSON the name of the action.',
        'sluice-webhook-secret': 'With NDJSON: the secret that goes with webhookUrl.',
      }),
      body: { content: { 'application/json': { schema: actionBody }, [NDJSON_TYPE]: { schema: ndjsonBody } } },
      response: { 202: submitted },
    },
    handler: async (request, reply) => {
      const { queue } = request.params as { queue: string }
      const submit = isNdjson(request) ? submitStream : submitBody
      return submit(context, request, reply, queueOf(context, request, queue))
    },
  })
  app.route({
    method: 'POST',
    url: '/v1/actions/:action/jobs',
    config: { access: submitters, isStream: true },
    schema: {
      operationId: 'addJobs',
      tags: ['actions'],
      summary: 'Adds jobs to an open action, as NDJSON streamed to any length. Several producers may.',
      params: z.strictObject({ action: actionIdParam }),
      querystring: z.strictObject({
        from: z.enum(['start', 'accepted']).default('start').meta({
          description: '`accepted` leaves out as many lines as the action had received before: for one producer.',
        }),
      }),
      body: { content: { [NDJSON_TYPE]: { schema: ndjsonBody } } },
      response: { 202: submitted },
    },
    handler: async (request, reply) => {
      if (!isNdjson(request)) {
        throw new Problem('unsupported-media-type', `The Content-Type must be ${NDJSON_TYPE}: one job a line.`)
      }
      const { action: id } = request.params as { action: string }
      const { from } = request.query as { from: 'start' | 'accepted' }
      const action = actionOf(context, request, id)
      const { received, type } = await viewOf(action)
      const reader = readerOf(context, request)
      const upload = { action, reader, receivedBefore: received }
      const signal = untilGone(reply, context.isCut)
      const summary = await uploadJobs(request, reply, upload, () =>
        action.submit(checkedBuiltIns(reader, type), { from, whenFull: 'wait', signal }),
      )
      return reply.code(202).send({ ...(await viewOf(action)), ...summary })
    },
  })
}
