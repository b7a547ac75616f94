/**
 * An HTTP API that pushes back, in a process of its own. Each path is an account with limits of its own, which can be
 * changed without a word to its callers. Run by `HttpUpstream.start`; its settings come as JSON in the first argument.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { goFirst } from '../../src/testing/go-first.ts'
import { monotonicMs } from '../load/clock.ts'
import { type Account, QuotaAccount, type QuotaCall, RateAccount } from '../load/upstream-accounts.ts'

export interface HttpUpstreamSettings {
  /** Calls a second of an account, by its name. */
  readonly rates?: Readonly<Record<string, number>>
  /** Accounts that tell what is left. */
  readonly quotas?: Readonly<Record<string, QuotaSettings>>
  /** How long it takes to answer. */
  readonly latencyMs: number
}

export interface QuotaSettings {
  /** Left at the start, and again after each reset. */
  readonly left: number
  /** What it says it allows in all. */
  readonly limit: number
  readonly firstResetInMs: number
  readonly resetEveryMs: number
}

export type ToHttpUpstream = { ask: 'calls' } | { set: string; perSecond: number }

/** A call as it arrived; `at` of the machine's monotonic clock. */
export interface HttpCall {
  readonly account: string
  readonly at: number
  readonly status: number
  readonly quota?: QuotaCall
}

export type FromHttpUpstream = { is: 'ready'; port: number } | { is: 'calls'; calls: HttpCall[] } | { is: 'set' }

const settings = JSON.parse(process.argv[2] ?? '') as HttpUpstreamSettings
const rates = new Map(Object.entries(settings.rates ?? {}).map(([name, rate]) => [name, new RateAccount(rate)]))
const quotas = new Map(Object.entries(settings.quotas ?? {}).map(([name, quota]) => [name, new QuotaAccount(quota)]))
const calls: HttpCall[] = []

goFirst()

function tell(message: FromHttpUpstream): void {
  process.send?.(message)
}

const server = createServer({ noDelay: true, keepAliveTimeout: 60_000 }, (request, response) => {
  const at = monotonicMs()
  const account = (request.url ?? '/').slice(1)
  const found: Account | undefined = rates.get(account) ?? quotas.get(account)
  request.resume()
  if (found === undefined) {
    response.writeHead(404).end()
    return
  }
  const { status, headers, quota } = found.call(at)
  calls.push({ account, at, status, ...(quota && { quota }) })
  setTimeout(() => response.writeHead(status, headers).end('{}\n'), settings.latencyMs)
})

process.on('message', (message: ToHttpUpstream) => {
  if ('ask' in message) {
    tell({ is: 'calls', calls })
    return
  }
  const account = rates.get(message.set)
  if (account === undefined) throw new Error(`no account ${message.set}`)
  account.perSecond = message.perSecond
  tell({ is: 'set' })
})
process.on('disconnect', () => process.exit())
server.listen(0, '127.0.0.1', () => tell({ is: 'ready', port: (server.address() as AddressInfo).port }))
