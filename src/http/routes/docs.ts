import { z } from 'zod'
import type { App } from '../context.ts'
import { docsPage, docsPolicy, type OpenApiDocument } from '../docs-page.ts'

export function addDocsRoutes(app: App): void {
  app.route({
    method: 'GET',
    url: '/openapi.json',
    config: { access: 'anybody' },
    schema: {
      operationId: 'getOpenApi',
      tags: ['docs'],
      summary: 'This API, as an OpenAPI 3.1 document.',
      querystring: z.strictObject({}),
      response: { 200: z.looseObject({}).meta({ examples: [{ openapi: '3.1.0' }] }) },
    },
    handler: async (_request, reply) => reply.send(app.swagger() as Record<string, unknown>),
  })
  app.route({
    method: 'GET',
    url: '/docs',
    config: { access: 'anybody' },
    schema: {
      operationId: 'getDocs',
      tags: ['docs'],
      summary: 'This API, as a page for people.',
      querystring: z.strictObject({}),
      response: {
        200: {
          description: 'A page of HTML that needs nothing else.',
          content: { 'text/html': { schema: z.string().meta({ examples: ['<!doctype html>…'] }) } },
        },
      },
    },
    handler: async (_request, reply) =>
      reply
        .header('content-security-policy', docsPolicy)
        .type('text/html; charset=utf-8')
        .serializer(String)
        // The page reads the few fields it knows; their types in the standard are far wider.
        .send(docsPage(app.swagger() as unknown as OpenApiDocument)),
  })
}
