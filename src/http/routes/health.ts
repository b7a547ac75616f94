import { z } from 'zod'
import { pingEach } from '../../store/ping.ts'
import type { App, Context } from '../context.ts'
import { overseers } from '../roles.ts'

/** A probe that waits longer has its answer. */
const READY_WITHIN_MS = 2_000

export function addHealthRoutes(app: App, context: Context): void {
  const state = (word: string) => z.object({ status: z.literal(word) }).meta({ examples: [{ status: word }] })
  app.route({
    method: 'GET',
    url: '/healthz',
    config: { access: 'anybody', rateLimit: false },
    schema: {
      operationId: 'getHealth',
      tags: ['health'],
      summary: 'Says that the process runs.',
      querystring: z.strictObject({}),
      response: { 200: state('ok') },
    },
    handler: () => ({ status: 'ok' as const }),
  })
  app.route({
    method: 'GET',
    url: '/readyz',
    config: { access: 'anybody' },
    schema: {
      operationId: 'getReadiness',
      tags: ['health'],
      summary: 'Says that Redis answers, every master of a Cluster, or 503.',
      querystring: z.strictObject({}),
      response: { 200: state('ready') },
    },
    handler: async () => {
      await pingEach(context.store.redis, READY_WITHIN_MS)
      return { status: 'ready' as const }
    },
  })
  app.route({
    method: 'GET',
    url: '/metrics',
    config: { access: overseers },
    schema: {
      operationId: 'getMetrics',
      tags: ['health'],
      summary: 'The figures of all queues, for Prometheus.',
      querystring: z.strictObject({}),
      response: {
        200: {
          description: 'Prometheus text exposition.',
          content: {
            'text/plain': { schema: z.string().meta({ examples: ['sluice_jobs{queue="mail",state="waiting"} 17\n'] }) },
          },
        },
      },
    },
    handler: async (_request, reply) => {
      const text = await context.metrics.expose({
        openStreams: context.streams.count,
        connections: context.connections.count,
      })
      return reply.type(context.metrics.contentType).serializer(String).send(text)
    },
  })
}
