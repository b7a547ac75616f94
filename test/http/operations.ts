import type { FastifyInstance } from 'fastify'
import { createServer } from '../../src/http/index.ts'
import { Sluice } from '../../src/index.ts'

export interface JsonSchema {
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  properties?: Record<string, JsonSchema>
  items?: JsonSchema
  anyOf?: JsonSchema[]
  additionalProperties?: boolean | JsonSchema
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  examples?: unknown[]
}

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  description?: string
  example?: unknown
  schema: JsonSchema
}

export interface Media {
  schema: JsonSchema
  example?: unknown
  examples?: Record<string, { value: unknown }>
}

/** One operation of the OpenAPI document. */
export interface Operation {
  id: string
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With `{queue}` and the like. */
  path: string
  summary: string
  tags: string[]
  access: readonly string[] | 'anybody'
  parameters: Parameter[]
  /** By media type; empty if it takes no body. */
  bodies: Record<string, Media>
  responses: Record<string, { content?: Record<string, Media> }>
}

interface Document {
  openapi: string
  paths: Record<string, Record<string, Record<string, unknown>>>
}

export async function operationsOf(app: FastifyInstance): Promise<Operation[]> {
  await app.ready()
  const { paths } = app.swagger() as unknown as Document
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, found]) => ({
      id: String(found.operationId),
      method: method.toUpperCase() as Operation['method'],
      path,
      summary: String(found.summary ?? ''),
      tags: (found.tags ?? []) as string[],
      access: found['x-access'] as Operation['access'],
      parameters: (found.parameters ?? []) as Parameter[],
      bodies: (found.requestBody as { content: Record<string, Media> } | undefined)?.content ?? {},
      responses: found.responses as Operation['responses'],
    })),
  )
}

/** All operations, before any test has begun: the document needs no Redis. */
export async function documentedOperations(): Promise<Operation[]> {
  const sluice = new Sluice({ redis: { path: '/nowhere' }, log: () => {} })
  const app = createServer({ sluice, queues: { mail: sluice.queue('mail') } })
  try {
    return await operationsOf(app)
  } finally {
    await app.close()
    await sluice.close()
  }
}

export function exampleIn(media: Media): unknown {
  return media.example ?? Object.values(media.examples ?? {})[0]?.value ?? media.schema.examples?.[0]
}

/** The path with examples for its parameters, or what is given for them. */
export function pathOf(operation: Operation, given: Readonly<Record<string, string>> = {}): string {
  return operation.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const parameter = operation.parameters.find((each) => each.in === 'path' && each.name === name)
    const example = parameter?.example ?? parameter?.schema.examples?.[0]
    return given[name] ?? encodeURIComponent(String(example))
  })
}

/** The body that the document gives as an example, with its type; undefined if it takes none. */
export function bodyOf(operation: Operation): { type: string; text: string } | undefined {
  const [entry] = Object.entries(operation.bodies)
  if (!entry) return undefined
  const [type, media] = entry
  const example = exampleIn(media)
  return { type, text: typeof example === 'string' ? example : JSON.stringify(example) }
}
