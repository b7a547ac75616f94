import { z } from 'zod'
import { definedOnly } from '../../defined-only.ts'
import { cursorForm } from '../../engine/actions/actions.ts'
import { actionOf, actionSummary, actionView, exampleAction, noAction, placeOf, viewOf } from '../action-views.ts'
import { type App, type Context, queueOf, tenantOf } from '../context.ts'
import { actionIdParam, cursorParam, limitParam, nextCursor, queueParam, tenantName } from '../fields.ts'
import { readers, submitters } from '../roles.ts'

export function addActionRoutes(app: App, context: Context): void {
  addReads(app, context)
  addChanges(app, context)
}

const params = z.strictObject({ action: actionIdParam })
const noQuery = z.strictObject({})

function addReads(app: App, context: Context): void {
  app.route({
    method: 'GET',
    url: '/v1/queues/:queue/actions',
    config: { access: readers },
    schema: {
      operationId: 'listActions',
      tags: ['actions'],
      summary: 'Lists the actions of a queue, or of one tenant of it, newest first.',
      params: z.strictObject({ queue: queueParam }),
      querystring: z.strictObject({
        limit: limitParam,
        cursor: cursorParam((cursor) => cursorForm.test(cursor)),
        tenant: tenantName.optional().meta({ description: 'Only of this tenant.' }),
      }),
      response: {
        200: z.object({ actions: z.array(actionView), cursor: nextCursor }).meta({
          examples: [{ actions: [exampleAction] }],
        }),
      },
    },
    handler: async (request) => {
      const queue = queueOf(context, request, request.params.queue)
      const { limit, cursor } = request.query
      const tenant = tenantOf(request, request.query.tenant)
      const page = await queue.actions(definedOnly({ tenant, cursor, limit }))
      return { actions: [...page.actions], cursor: page.cursor }
    },
  })
  app.route({
    method: 'GET',
    url: '/v1/actions/:action',
    config: { access: readers },
    schema: {
      operationId: 'getAction',
      tags: ['actions'],
      summary: 'Shows how an action stands.',
      params,
      querystring: noQuery,
      response: { 200: actionView },
    },
    handler: (request) => viewOf(actionOf(context, request, request.params.action)),
  })
  app.route({
    method: 'GET',
    url: '/v1/actions/:action/summary',
    config: { access: readers },
    schema: {
      operationId: 'getActionSummary',
      tags: ['actions'],
      summary: 'Shows what became of the jobs of an action: counts, durations, the most frequent errors.',
      params,
      querystring: noQuery,
      response: { 200: actionSummary },
    },
    handler: async (request) => {
      const action = actionOf(context, request, request.params.action)
      const summary = await action.summary()
      if (!summary) throw noAction(action.id)
      return { ...summary, errors: [...summary.errors] }
    },
  })
}

function addChanges(app: App, context: Context): void {
  app.route({
    method: 'POST',
    url: '/v1/actions/:action/seal',
    config: { access: submitters },
    schema: {
      operationId: 'sealAction',
      tags: ['actions'],
      summary: 'Seals an action: nothing more is added, and it ends with its last job. Again changes nothing.',
      params,
      querystring: noQuery,
      response: { 200: actionView },
    },
    handler: async (request) => {
      const action = actionOf(context, request, request.params.action)
      await action.seal()
      return viewOf(action)
    },
  })
  app.route({
    method: 'POST',
    url: '/v1/actions/:action/cancel',
    config: { access: submitters },
    schema: {
      operationId: 'cancelAction',
      tags: ['actions'],
      summary: 'Cancels an action: what waits is dropped, what runs gets its signal. One that has ended stays so.',
      params,
      querystring: noQuery,
      response: { 200: actionView },
    },
    handler: (request) => actionOf(context, request, request.params.action).cancel(),
  })
  app.route({
    method: 'POST',
    url: '/v1/actions/:action/retry-failed',
    config: { access: submitters, isStream: true },
    schema: {
      operationId: 'retryFailedJobs',
      tags: ['actions'],
      summary: 'Runs the dead letters of an action again, as an action of their own.',
      params,
      querystring: noQuery,
      response: { 202: actionView },
    },
    handler: async (request, reply) => {
      const action = await actionOf(context, request, request.params.action).retryFailed()
      return reply
        .code(202)
        .header('location', placeOf(action))
        .send(await viewOf(action))
    },
  })
}
