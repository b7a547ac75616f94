import { Webhook as Signer } from 'standardwebhooks'
import type { Webhook } from '../engine/actions/action-input.ts'
import type { ActionSummary } from '../engine/actions/action-view.ts'
import type { TellWebhook } from '../engine/actions/duty-work.ts'
import { type HttpRequestHandler, httpRequest } from './http-request/http-request.ts'
import { checkHttpRequestOptions, type HttpRequestOptions } from './http-request/options.ts'
import type { HttpRequestPayload } from './http-request/payload.ts'

const TIMEOUT_MS = 15_000
// Receivers may refuse what is larger than 20 kB; an aggregate that would not fit is left out and said so.
const LARGEST_AGGREGATE_BYTES = 12_000

/**
 * Tells of an action's end by the conventions of Standard Webhooks: signed, with an id that stays the same when it is told
 * again. Whoever submits actions chooses the address, so that it is held to public ones like any other call.
 */
export class WebhookTeller {
  readonly #options: HttpRequestOptions
  /** Made with the first webhook: it loads what makes calls, which most processes never need. */
  #handler: HttpRequestHandler | undefined

  /** @param options - `allowPrivate`: addresses and ranges that are allowed although they are not public. */
  constructor(options: { allowPrivate?: readonly string[] } = {}) {
    this.#options = {
      allowHosts: ['*:*'],
      allowPrivate: options.allowPrivate ?? [],
      timeoutMs: TIMEOUT_MS,
      maxRedirects: 0,
      maxResponseBytes: 1_024,
      userAgent: 'sluice-webhooks',
    }
    // Here, where whoever gave them hears of it.
    checkHttpRequestOptions(this.#options)
  }

  /** Rejects when nobody answered with 2xx. */
  readonly tell: TellWebhook = async ({ url, secret }, id, summary) => {
    const now = new Date()
    const body = JSON.stringify({
      type: `action.${summary.state.toLowerCase()}`,
      timestamp: now.toISOString(),
      data: bounded(summary),
    })
    const headers = {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)),
      'webhook-signature': signatureOf({ url, secret }, id, now, body),
    }
    const payload: HttpRequestPayload = { method: 'POST', url, headers, body, expect: ['2xx'] }
    const { signal } = new AbortController()
    this.#handler ??= httpRequest(this.#options)
    const answer = await this.#handler({ payload }, { signal, admit: () => Promise.resolve(), learn: () => undefined })
    if (!('status' in answer)) throw new Error(`the webhook ${new URL(url).host} was not told: ${reasonOf(answer)}`)
  }

  close(): void {
    this.#handler?.close()
  }
}

function signatureOf({ secret }: Webhook, id: string, at: Date, body: string): string {
  return new Signer(secret).sign(id, at, body)
}

function bounded(summary: ActionSummary): object {
  const { aggregate, ...rest } = summary
  const size = aggregate === undefined ? 0 : Buffer.byteLength(JSON.stringify(aggregate))
  return size > LARGEST_AGGREGATE_BYTES ? { ...rest, aggregateLeftOut: size } : summary
}

/** Whoever reads it knows the option by its place among those of a Sluice. */
function reasonOf(outcome: object): string {
  const reason = 'reason' in outcome ? String(outcome.reason) : 'it pushed back'
  return reason.replace('Allow it with allowPrivate', 'Allow it with webhooks.allowPrivate')
}
