import swagger from '@fastify/swagger'
import type { RouteOptions } from 'fastify'
import { jsonSchemaTransform } from 'fastify-type-provider-zod'
import { z } from 'zod'
import type { App } from './context.ts'
import { problemKinds } from './problem.ts'
import type { Access } from './roles.ts'

const problemDocument = {
  type: 'object',
  description: 'A problem document (RFC 9457).',
  required: ['type', 'title', 'status', 'detail'],
  properties: {
    type: { type: 'string', enum: Object.keys(problemKinds).map((kind) => `urn:sluice:problem:${kind}`) },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    instance: { type: 'string', description: 'Names the request; the log has it as reqId.' },
    code: { type: 'string', description: 'Code of the error of Sluice, where it is one.' },
    errors: {
      type: 'array',
      items: {
        type: 'object',
        required: ['path', 'problem'],
        properties: { path: { type: 'string' }, problem: { type: 'string' } },
      },
    },
  },
  examples: [
    {
      type: 'urn:sluice:problem:invalid-request',
      title: 'The request is not valid',
      status: 400,
      detail: 'query.limit must be a whole number from 1 to 500',
      errors: [{ path: 'query.limit', problem: 'must be a whole number from 1 to 500' }],
    },
  ],
}

interface Operation {
  operationId?: string
  summary?: string
  security?: unknown
  responses: Record<string, unknown>
  'x-access'?: Access
}

/** The document is made of the schemas that requests are checked by, so it cannot say anything else than they do. */
export function addOpenApi(app: App): void {
  void app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Sluice',
        version: '1',
        description: 'Queues, jobs, bulk actions, tenants, limits and dead letters of a Sluice server.',
      },
      components: {
        securitySchemes: { key: { type: 'http', scheme: 'bearer', description: 'An API key: slk_…' } },
        // What zod makes of it is JSON schema of the dialect that OpenAPI 3.1 has; their types do not know each other.
        schemas: { Problem: problemDocument as never },
      },
    },
    // The plugin's types are those of OpenAPI 2 and 3 at once, and of schemas that are no zod yet.
    transform: (document) => transform(document as unknown as Transformed) as never,
    transformObject: (document) => {
      const { openapiObject } = document as { openapiObject: { paths?: Record<string, Record<string, Operation>> } }
      for (const path of Object.values(openapiObject.paths ?? {})) for (const each of Object.values(path)) finish(each)
      // Changed in place: it is what came.
      return openapiObject as never
    },
  })
  app.addHook('onRoute', requireDescription)
}

/** Every route says who may use it and what it does: one that does not is a mistake of ours. */
function requireDescription({ url, method, config, schema }: RouteOptions): void {
  const isDescribed = config?.access !== undefined && schema?.operationId && schema.summary
  if (!isDescribed) throw new TypeError(`the route ${String(method)} ${url} lacks access, operationId or summary`)
}

interface Transformed {
  schema: Record<string, unknown>
  url: string
  route: RouteOptions
}

interface ByContent {
  readonly content: Readonly<Record<string, { schema: z.ZodType }>>
}

/** As the library does it, but for bodies of several media types, which it does not know. */
function transform(document: Transformed): { schema: Record<string, unknown>; url: string } {
  const { body, ...rest } = document.schema
  const isPlain = body === undefined || body instanceof z.ZodType
  // It asks for the types of the plugin, of which it reads no more than is here.
  const made = jsonSchemaTransform({ ...document, schema: isPlain ? document.schema : rest } as never) as {
    schema: Record<string, unknown>
    url: string
  }
  const schema = { ...made.schema, 'x-access': document.route.config?.access }
  if (isPlain) return { schema, url: made.url }
  const entries = Object.entries((body as ByContent).content).map(([type, { schema: each }]) => [
    type,
    { schema: jsonSchemaOf(each) },
  ])
  return { schema: { ...schema, body: { content: Object.fromEntries(entries) } }, url: made.url }
}

function jsonSchemaOf(schema: z.ZodType): Record<string, unknown> {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io: 'input',
    target: 'draft-2020-12',
    unrepresentable: 'any',
  })
  return rest
}

function finish(operation: Operation): void {
  const access = operation['x-access'] ?? 'anybody'
  operation.security = access === 'anybody' ? [] : [{ key: [] }]
  const content = { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } }
  operation.responses['4XX'] = {
    description: 'The request was refused; nothing was changed unless it says so.',
    content,
  }
  operation.responses['5XX'] = { description: 'The server or its store failed.', content }
}
