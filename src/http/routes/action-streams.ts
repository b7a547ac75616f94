import { z } from 'zod'
import type { Action } from '../../engine/actions/action.ts'
import { actionOf, viewOf } from '../action-views.ts'
import { type App, type Context, plainReply } from '../context.ts'
import { actionIdParam, headers } from '../fields.ts'
import { textStream } from '../ndjson.ts'
import { Problem } from '../problem.ts'
import { readers } from '../roles.ts'
import type { SseMessage } from '../sse.ts'

/** A browser comes again whenever a stream ends; having seen this id, it is told that there is nothing more. */
const END_ID = 'end'

/** Every state of the action is whole, so whoever comes again has missed nothing. */
async function* messagesOf(action: Action, signal: AbortSignal): AsyncGenerator<SseMessage> {
  let number = 0
  for await (const progress of action.progress({ signal })) {
    number += 1
    yield { event: 'progress', id: String(number), data: progress }
  }
  yield { event: 'end', id: END_ID, data: await viewOf(action) }
}

export function addActionStreamRoutes(app: App, context: Context): void {
  const params = z.strictObject({ action: actionIdParam })
  app.route({
    method: 'GET',
    url: '/v1/actions/:action/events',
    config: { access: readers, isStream: true },
    schema: {
      operationId: 'followAction',
      tags: ['actions'],
      summary: 'Follows an action: its progress as server-sent events, until it has ended.',
      description: 'At most ten `progress` events a second, then one `end` with the action. Coming again continues.',
      params,
      querystring: z.strictObject({}),
      headers: headers({
        'last-event-id': 'Sent by browsers that come again; after `end` there is nothing more (204).',
      }),
      response: {
        200: {
          description: 'Events `progress` and `end`.',
          content: {
            'text/event-stream': {
              schema: z.string().meta({
                examples: [
                  'id: 1\nevent: progress\ndata: {"state":"RUNNING","total":1000,"done":300,"perSecond":50}\n\n',
                ],
              }),
            },
          },
        },
      },
    },
    handler: async (request, reply) => {
      const action = actionOf(context, request, request.params.action)
      await viewOf(action)
      if (request.headers['last-event-id'] === END_ID) return plainReply(reply).code(204).send()
      return context.streams.send(plainReply(reply), (signal) => messagesOf(action, signal))
    },
  })
  app.route({
    method: 'GET',
    url: '/v1/actions/:action/results',
    config: { access: readers, isStream: true },
    schema: {
      operationId: 'getResults',
      tags: ['actions'],
      summary: 'Downloads what became of each job so far, as NDJSON, if the action keeps results.',
      params,
      querystring: z.strictObject({
        order: z.enum(['job', 'finish']).default('job').meta({ description: 'As submitted, or as they ended.' }),
      }),
      response: {
        200: {
          description: 'One line for each job that has ended.',
          content: {
            'application/x-ndjson': {
              schema: z.string().meta({
                examples: [
                  '{"id":"order-17","state":"succeeded","result":{"status":200},"attempts":1,"durationMs":18}\n',
                ],
              }),
            },
          },
        },
      },
    },
    handler: async (request, reply) => {
      const action = actionOf(context, request, request.params.action)
      const view = await viewOf(action)
      if (!view.keepResults) {
        throw new Problem('conflict', 'This action keeps no results. Submit it with keepResults to have them.')
      }
      // Whoever takes nothing for this long has gone, and only the network has not noticed.
      request.raw.socket.setTimeout?.(context.settings.idleReaderMs)
      const lines = action.resultLines({ order: request.query.order })
      return plainReply(reply).type('application/x-ndjson; charset=utf-8').send(textStream(lines))
    },
  })
}
