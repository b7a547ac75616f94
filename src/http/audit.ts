import type { FastifyReply, FastifyRequest } from 'fastify'
import { unlessAborted } from '../engine/unless-aborted.ts'
import type { AuditEntry } from '../store/audit.ts'
import type { Context } from './context.ts'

const LONGEST_CHANGE = 2_000
const secret = /secret|password|authorization|token|hash/i

/**
 * Writes down a change before it is answered, so that whoever was told of it can find it in the log. A refused request
 * has changed nothing and is only in the server's own log. A log that cannot be written is no reason to hide from the
 * caller what was done: it is said in the server's log.
 */
export async function auditChange(context: Context, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  if (!isChange(request, reply.statusCode)) return
  const entry = entryOf(request, reply.statusCode)
  request.log.info({ audit: entry }, 'a change was made')
  try {
    await unlessAborted(context.audit.add(entry), AbortSignal.timeout(context.settings.handlerTimeoutMs))
  } catch (error) {
    request.log.error({ err: error, audit: entry }, 'a change could not be written to the audit log')
  }
  try {
    context.settings.onChange?.(entry)
  } catch (error) {
    request.log.error({ err: error, audit: entry }, 'onChange threw')
  }
}

function isChange(request: FastifyRequest, status: number): boolean {
  if (request.method === 'GET' || request.is404 || request.caller === undefined) return false
  return status < 400 || status >= 500 || request.hasChanged
}

function entryOf(request: FastifyRequest, status: number): AuditEntry {
  const { caller, body } = request
  return {
    at: Date.now(),
    who: caller?.id ?? '',
    role: caller?.role ?? '',
    address: request.ip,
    operation: request.routeOptions.schema?.operationId ?? '',
    target: request.url.split('?', 1)[0] ?? '',
    change: isPlain(body) ? describe(body) : undefined,
    status,
    requestId: request.id,
  }
}

/** False for a stream of NDJSON. */
function isPlain(body: unknown): body is object {
  return typeof body === 'object' && body !== null && Object.getPrototypeOf(body) === Object.prototype
}

/** What was asked for: settings in full, work by its number, secrets not at all. */
function describe(body: object): string {
  const text = JSON.stringify(body, (name, value: unknown) => {
    if (secret.test(name)) return '[secret]'
    if (name === 'payload') return '[payload]'
    if (name === 'jobs' && Array.isArray(value)) return `[${value.length} jobs]`
    return value
  })
  return text.length > LONGEST_CHANGE ? `${text.slice(0, LONGEST_CHANGE)}…` : text
}
