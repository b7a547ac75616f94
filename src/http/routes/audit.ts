import { z } from 'zod'
import { isAuditId, type KeptAuditEntry } from '../../store/audit.ts'
import type { App, Context } from '../context.ts'
import { cursorParam, instant, limitParam, nextCursor } from '../fields.ts'
import { admins } from '../roles.ts'
import type { ShapeOf } from '../view-shape.ts'

const entry = z.object({
  id: z.string(),
  at: instant,
  who: z.string().meta({ description: 'Id of the API key, or `local` on a server without keys.' }),
  role: z.string(),
  address: z.string(),
  operation: z.string(),
  target: z.string(),
  change: z.string().optional(),
  status: z.number(),
  requestId: z.string(),
} satisfies ShapeOf<KeptAuditEntry>)

export function addAuditRoutes(app: App, context: Context): void {
  app.route({
    method: 'GET',
    url: '/v1/audit',
    config: { access: admins },
    schema: {
      operationId: 'listAudit',
      tags: ['audit'],
      summary: 'Lists the changes that were made through the server, newest first.',
      querystring: z.strictObject({ limit: limitParam, cursor: cursorParam(isAuditId) }),
      response: {
        200: z.object({ entries: z.array(entry), cursor: nextCursor }).meta({
          examples: [
            {
              entries: [
                {
                  id: '1768000000000-0',
                  at: 1768000000000,
                  who: 'ops',
                  role: 'operator',
                  address: '127.0.0.1',
                  operation: 'changeTenant',
                  target: '/v1/queues/mail/tenants/acme',
                  change: '{"weight":3}',
                  status: 200,
                  requestId: '6f1c',
                },
              ],
            },
          ],
        }),
      },
    },
    handler: async (request) => {
      const { limit, cursor } = request.query
      const entries = await context.audit.list({ before: cursor, count: limit })
      return { entries, cursor: entries.length === limit ? entries.at(-1)?.id : undefined }
    },
  })
}
