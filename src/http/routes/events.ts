import { z } from 'zod'
import { definedOnly } from '../../defined-only.ts'
import type { Queue } from '../../engine/queue.ts'
import { isStreamId } from '../../store/uint64.ts'
import { type App, type Context, mayTouch, plainReply, queueOf } from '../context.ts'
import { flagParam, headers, queueParam } from '../fields.ts'
import { invalidField } from '../problem.ts'
import { readers } from '../roles.ts'
import type { SseMessage } from '../sse.ts'

async function* messagesOf(
  queue: Queue,
  { from, follow, signal }: { from: string | undefined; follow: boolean | undefined; signal: AbortSignal },
  mayShow: (tenant: string | undefined) => boolean,
): AsyncGenerator<SseMessage> {
  for await (const event of queue.events(definedOnly({ from, follow, signal }))) {
    if (mayShow(event.tenant)) yield { event: event.type, id: event.id, data: event }
  }
}

export function addEventRoutes(app: App, context: Context): void {
  app.route({
    method: 'GET',
    url: '/v1/queues/:queue/events',
    config: { access: readers, isStream: true },
    schema: {
      operationId: 'followQueue',
      tags: ['queues'],
      summary: 'Follows a queue: what happens in it, as server-sent events.',
      description: 'Goes on after Last-Event-ID, or else after `from`; without either, with what happens from now on.',
      params: z.strictObject({ queue: queueParam }),
      querystring: z.strictObject({
        from: z
          .string()
          .refine(isStreamId, 'must be the id of an event, or 0 for all that are kept')
          .optional()
          .meta({ description: 'Id of the last event that is known; 0 for all that are kept.' }),
        follow: flagParam('false: end with the last event that there is; without it, streams end with the server.'),
      }),
      headers: headers({ 'last-event-id': 'Id of the last event that is known; before `from`.' }),
      response: {
        200: {
          description: 'Events named by their type.',
          content: {
            'text/event-stream': {
              schema: z.string().meta({
                examples: [
                  'id: 1768000000000-0\nevent: action.completed\ndata: {"tenant":"acme","action":"summer-sale"}\n\n',
                ],
              }),
            },
          },
        },
      },
    },
    handler: async (request, reply) => {
      const queue = queueOf(context, request, request.params.queue)
      const last = request.headers['last-event-id']
      if (last !== undefined && !isStreamId(String(last))) {
        throw invalidField('headers.last-event-id', 'must be the id of an event')
      }
      const from = last === undefined ? request.query.from : String(last)
      // What names no tenant is about all of them.
      const mayShow = (tenant: string | undefined) => mayTouch(request, tenant ?? '')
      return context.streams.send(plainReply(reply), (signal) =>
        messagesOf(queue, { from, follow: request.query.follow, signal }, mayShow),
      )
    },
  })
}
