/**
 * The built-in processor: performs jobs `{ method, url, headers?, body?, expect? }`.
 *
 *   queue.process('http.request', httpRequest({ allowHosts: ['api.example.com'] }), { concurrency: 50 })
 */
import type { Handler, JobContext } from '../../engine/job-run.ts'
import { discard, type Outcome } from '../../engine/outcome.ts'
import { isSluiceError, UpstreamError } from '../../errors.ts'
import type { AnswerHeaders } from '../../limits/answer-headers.ts'
import { type AnswerBody, readAnswerBody } from './answer-body.ts'
import { type Connection, Connections } from './connections.ts'
import { Dialer } from './dialer.ts'
import { checkHttpRequestOptions, type HttpRequestOptions, type HttpRequestSettings } from './options.ts'
import { type HttpRequestPayload, type Request, readPayload } from './payload.ts'
import { isRedirect, redirected } from './redirect.ts'
import { Refusal } from './refusal.ts'
import { type HttpRequestResult, resultOf, textOf } from './result.ts'
import { TimeBudget } from './time-budget.ts'
import { isExpected, verdictOn } from './verdict.ts'

/** What performing a call needs of a job's context. */
export type CallContext = Pick<JobContext, 'signal' | 'admit' | 'learn'>

/** A handler for `queue.process`, with connections of its own that are kept between jobs. */
export interface HttpRequestHandler extends Handler<HttpRequestPayload> {
  (job: { readonly payload: HttpRequestPayload }, context: CallContext): Promise<HttpRequestResult | Outcome>
  /** Ends its idle connections, after the queue that uses it is closed. They would end by themselves within seconds. */
  close(): void
}

export function httpRequest(options: HttpRequestOptions): HttpRequestHandler {
  const settings = checkHttpRequestOptions(options)
  const { allowPrivate: addresses, resolve, ca, maxConnections } = settings
  const dialer = new Dialer({ addresses, resolve, ca })
  const connections = new Connections({ dialer, maxPerOrigin: maxConnections })
  const performer = new Performer(settings, connections)

  const handler = async (job: { readonly payload: HttpRequestPayload }, context: CallContext) => {
    try {
      return await performer.perform(readPayload(job.payload, settings), context)
    } catch (error) {
      if (error instanceof Refusal) return discard(error.message)
      throw error
    }
  }
  return Object.assign(handler, { close: () => connections.close() })
}

/** What is read of an answer that was not expected, however little is kept of others: it says why. */
const REASON_BYTES = 4_096

interface Answer {
  readonly status: number
  readonly headers: AnswerHeaders
  readonly body: AnswerBody
}

class Performer {
  readonly #settings: HttpRequestSettings
  readonly #connections: Connections

  constructor(settings: HttpRequestSettings, connections: Connections) {
    this.#settings = settings
    this.#connections = connections
  }

  async perform({ call: first, expect }: Request, context: CallContext): Promise<HttpRequestResult | Outcome> {
    const { maxRedirects, timeoutMs } = this.#settings
    const time = new TimeBudget(timeoutMs, context.signal)
    let call = first
    for (let redirects = 0; ; redirects++) {
      const answer = await this.#send({ call, expect }, context, time)
      const { status, headers, body } = answer
      context.learn({ status, headers, text: isExpected(status, expect) ? '' : textOf(body, headers) })
      if (isExpected(status, expect)) return resultOf(answer, { durationMs: time.spentMs, redirects })
      const location = headers.location
      if (!isRedirect(status, location) || maxRedirects === 0) {
        return verdictOn(call.url.host, { status, headers, text: textOf(body, headers) }, expect)
      }
      if (redirects === maxRedirects) {
        throw new Refusal(`${first.url.host} redirects more than ${maxRedirects} times (maxRedirects).`)
      }
      call = redirected(call, status, location)
    }
  }

  /** One call, each redirect being one of its own: its host and address are checked, its connection open, then it is admitted. */
  async #send({ call, expect }: Request, context: CallContext, time: TimeBudget): Promise<Answer> {
    const { url } = call
    this.#settings.allowHosts.assertAllowed(url)
    const onTimeout = () => {
      const message = `${url.host} did not answer within ${this.#settings.timeoutMs} ms (timeoutMs)`
      return new UpstreamError({ host: url.host, message })
    }
    const described = (error: unknown): never => {
      throw describe(error, url, context.signal)
    }
    const connection = await this.#connections
      .take(url, context.signal, (dial) => time.spend(dial, onTimeout))
      .catch(described)
    let isComplete = false
    try {
      await context.admit()
      const answer = await time
        .spend((signal) => this.#exchange(connection, { call, expect }, signal), onTimeout)
        .catch(described)
      isComplete = !answer.body.isTruncated
      return answer
    } finally {
      if (isComplete) connection.giveBack()
      else connection.drop()
    }
  }

  async #exchange(connection: Connection, { call, expect }: Request, signal: AbortSignal): Promise<Answer> {
    const { method, url, headers, body } = call
    const path = url.pathname + url.search
    const response = await connection.client.request({ method, path, headers, body: body ?? null, signal })
    const status = response.statusCode
    const contentEncoding = textHeader(response.headers['content-encoding'])
    const { maxResponseBytes } = this.#settings
    const maxBytes = isExpected(status, expect) ? maxResponseBytes : Math.max(maxResponseBytes, REASON_BYTES)
    const answerBody = await readAnswerBody(response.body, { contentEncoding, maxBytes })
    return { status, headers: response.headers, body: answerBody }
  }
}

/** Errors of the network get a message that names the host; what has one already, and the job's own end, stays as it is. */
function describe(error: unknown, url: URL, signal: AbortSignal): unknown {
  if (error instanceof Refusal || isSluiceError(error) || error === signal.reason) return error
  const { code, message } = error as { code?: unknown; message?: unknown }
  const detail = typeof code === 'string' ? `${code} (${String(message)})` : String(message ?? error)
  return new UpstreamError({ host: url.host, message: `the call to ${url.host} failed: ${detail}`, cause: error })
}

function textHeader(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' || value === undefined ? value : value.join(', ')
}
