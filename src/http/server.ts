import { randomUUID } from 'node:crypto'
import helmet from '@fastify/helmet'
import rateLimit from '@fastify/rate-limit'
import Fastify, { type FastifyInstance, type FastifyServerOptions, type RouteOptions } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { serializerCompiler, validatorCompiler } from 'fastify-type-provider-zod'
import { Metrics } from '../observe/metrics.ts'
import { storeOf } from '../sluice.ts'
import { AuditStore } from '../store/audit.ts'
import { IdempotencyStore } from '../store/idempotency.ts'
import { KeyRing } from './api-keys.ts'
import { auditChange } from './audit.ts'
import { authenticate, authorize } from './auth.ts'
import { guardListening } from './binding.ts'
import { addBodyParsers, limitBodyTime, refuseEncodedBody, refuseUnusedBody } from './body.ts'
import { answerClientError } from './client-error.ts'
import { Connections } from './connections.ts'
import type { App, Context } from './context.ts'
import { handleError, handleNotFound } from './error-handler.ts'
import { limitHandlerTime } from './handler-time.ts'
import { addOpenApi } from './openapi.ts'
import { linkNextPage } from './page-links.ts'
import { Problem } from './problem.ts'
import { refuseMalformedQuery } from './query.ts'
import { addActionStreamRoutes } from './routes/action-streams.ts'
import { addActionUploadRoutes } from './routes/action-uploads.ts'
import { addActionRoutes } from './routes/actions.ts'
import { addAuditRoutes } from './routes/audit.ts'
import { addBacklogRoutes } from './routes/backlog.ts'
import { addCongestionRoutes } from './routes/congestion.ts'
import { addDeadLetterRoutes } from './routes/dead-letters.ts'
import { addDocsRoutes } from './routes/docs.ts'
import { addEventRoutes } from './routes/events.ts'
import { addHealthRoutes } from './routes/health.ts'
import { addJobRoutes } from './routes/jobs.ts'
import { addLetterSweepRoutes } from './routes/letter-sweeps.ts'
import { addLimitRoutes } from './routes/limits.ts'
import { addOverviewRoutes } from './routes/overview.ts'
import { addQueueRoutes } from './routes/queues.ts'
import { addScheduleRoutes } from './routes/schedules.ts'
import { addTenantRoutes } from './routes/tenants.ts'
import { checkServerOptions, type ServerOptions, type ServerSettings } from './server-options.ts'
import { OpenStreams } from './sse.ts'

/** Names in paths can have 256 characters, and each can be written with nine. */
const LONGEST_PARAM = 4_096
/** How often Node looks for connections whose headers are late. */
const LOOK_FOR_LATE_MS = 1_000
const defaultRate = { max: 1_000, windowMs: 10_000 }

/**
 * The HTTP server over some queues of a Sluice. It does not listen yet: `await server.listen({ host, port })`, which without
 * keys rejects for a host that other machines can reach. `close()` takes no new requests, ends streams of events, and gives what is
 * under way `closeGraceMs`; the Sluice is its owner's to close, afterwards.
 */
export function createServer(options: ServerOptions): FastifyInstance {
  const settings = checkServerOptions(options)
  const keys = new KeyRing(settings.keys)
  const store = storeOf(settings.sluice)
  const cut = new AbortController()
  const app = Fastify(fastifyOptions(settings)).withTypeProvider<ZodTypeProvider>()
  const context: Context = {
    settings,
    queues: settings.queues,
    store,
    audit: new AuditStore({ ...store, keep: settings.keepAudit }),
    idempotency: new IdempotencyStore(store),
    metrics: new Metrics({ queues: settings.queues, store }),
    streams: new OpenStreams({ most: settings.maxStreams, heartbeatMs: settings.heartbeatMs }),
    connections: new Connections(app.server),
    isCut: cut.signal,
  }
  app.setValidatorCompiler(validatorCompiler)
  app.setSerializerCompiler(serializerCompiler)
  app.setErrorHandler(handleError)
  app.setNotFoundHandler(handleNotFound)
  addBodyParsers(app)
  addHooks(app, context, keys)
  addClosing(app, context, cut)
  guardListening(app, settings.keys)
  addPlugins(app, settings, keys)
  // In a plugin of their own, so that those above are loaded when the first route is declared.
  void app.register(async (scope) => addRoutes(scope.withTypeProvider<ZodTypeProvider>(), context))
  return app.withTypeProvider()
}

function addRoutes(app: App, context: Context): void {
  app.addHook('onRoute', (route: RouteOptions) => limitHandlerTime(route, context.settings))
  addHealthRoutes(app, context)
  addDocsRoutes(app)
  addQueueRoutes(app, context)
  addOverviewRoutes(app, context)
  addJobRoutes(app, context)
  addActionUploadRoutes(app, context)
  addActionRoutes(app, context)
  addActionStreamRoutes(app, context)
  addTenantRoutes(app, context)
  addCongestionRoutes(app, context)
  addLimitRoutes(app, context)
  addDeadLetterRoutes(app, context)
  addLetterSweepRoutes(app, context)
  addBacklogRoutes(app, context)
  addScheduleRoutes(app, context)
  addEventRoutes(app, context)
  addAuditRoutes(app, context)
}

function fastifyOptions(settings: ServerSettings): FastifyServerOptions {
  return {
    logger: settings.log === undefined ? false : { ...settings.log, ...logShape },
    // Never the caller's: it names the request in the log and in the audit log.
    genReqId: () => randomUUID(),
    bodyLimit: settings.maxBodyBytes,
    routerOptions: { maxParamLength: LONGEST_PARAM },
    trustProxy: settings.trustProxy,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    // Uploads take as long as they take; bodies have bounds of their own.
    requestTimeout: 0,
    http: {
      headersTimeout: settings.headersTimeoutMs,
      connectionsCheckingInterval: Math.min(LOOK_FOR_LATE_MS, settings.headersTimeoutMs),
    },
    frameworkErrors: (error, request, reply) => {
      void handleError(error, request, reply)
    },
    clientErrorHandler: answerClientError,
  } as FastifyServerOptions
}

/** Requests as the log shows them: without headers, where keys are, and without queries, where anything may be. */
const logShape = {
  redact: ['req.headers', 'headers.authorization', 'authorization', '*.secret', '*.hash', '*.key'],
  serializers: {
    req: (request: { method?: string; url?: string; ip?: string }) => ({
      method: request.method,
      path: request.url?.split('?', 1)[0],
      address: request.ip,
    }),
  },
}

function addHooks(app: App, context: Context, keys: KeyRing): void {
  const { settings } = context
  app.decorateRequest('caller', undefined)
  app.decorateRequest('refusal', undefined)
  app.decorateRequest('hasChanged', false)
  app.addHook('onRequest', async (request) => authenticate(keys, request))
  app.addHook('preParsing', async (request) => {
    authorize(keys, request)
    refuseMalformedQuery(request)
    refuseEncodedBody(request)
    limitBodyTime(request, settings.bodyTimeoutMs)
  })
  app.addHook('preValidation', async (request) => refuseUnusedBody(request))
  app.addHook('preSerialization', async (request, reply, payload) => {
    linkNextPage(request, reply, payload)
    return payload
  })
  app.addHook('onSend', async (request, reply) => {
    reply.header('x-request-id', request.id)
    await auditChange(context, request, reply)
  })
  app.addHook('onResponse', async (request, reply) => {
    context.metrics.observeRequest({
      method: request.method,
      route: request.routeOptions.url ?? 'none',
      status: reply.statusCode,
      seconds: reply.elapsedTime / 1000,
    })
  })
}

function addPlugins(app: App, settings: ServerSettings, keys: KeyRing): void {
  void app.register(helmet, {
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
  })
  const rate = settings.rateLimit ?? (keys.isEmpty ? false : defaultRate)
  if (rate) {
    void app.register(rateLimit, {
      max: rate.max,
      timeWindow: rate.windowMs,
      keyGenerator: (request) => (request.caller ? `key ${request.caller.id}` : `address ${request.ip}`),
      errorResponseBuilder: (_request, { max, ttl }) =>
        new Problem('too-many-requests', `More than ${max} requests in ${rate.windowMs} ms.`, {
          retryAfterSeconds: Math.max(1, Math.ceil(ttl / 1000)),
        }),
    })
  }
  addOpenApi(app)
}

function addClosing(app: App, context: Context, cut: AbortController): void {
  let grace: NodeJS.Timeout | undefined
  let isClosing = false
  app.addHook('onRequest', async () => {
    if (isClosing) throw new Problem('unavailable', 'The server is closing.', { retryAfterSeconds: 2 })
  })
  app.addHook('preClose', async () => {
    isClosing = true
    context.streams.close()
    context.connections.close()
    const { closeGraceMs } = context.settings
    grace = setTimeout(() => {
      cut.abort(new Problem('unavailable', 'The server is closing.', { retryAfterSeconds: 2 }))
      // What has not gone after being told so does not go by itself.
      grace = setTimeout(() => app.server.closeAllConnections(), Math.min(closeGraceMs, LOOK_FOR_LATE_MS))
    }, closeGraceMs)
  })
  app.addHook('onClose', async () => {
    clearTimeout(grace)
    context.metrics.close()
  })
}
