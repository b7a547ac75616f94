import type { Requests } from '../requests.ts'
import { readCongestion as script } from '../scripts.generated.ts'

/** How far a tenant, or the whole queue, is behind. Times in ms. */
export interface FoundBacklog {
  readonly waiting: number
  /** Jobs a second. */
  readonly speed: number
  /** The speed was measured; false: it is what the limits let expect. */
  readonly isMeasured: boolean
  readonly backoffMs: number
}

export interface FoundCongestion extends FoundBacklog {
  /** Its token. */
  readonly tenant: string
  readonly throttles: number
  /** In ms since 1970; 0: never. */
  readonly throttledAt: number
  /** How long the job waits that was pushed back last; 0: none was. */
  readonly lastBackoffMs: number
  /** Jobs that have ended since the statistics began. */
  readonly finished: number
}

export interface CongestionReply {
  /** By the clock of Redis, in ms since 1970. */
  readonly now: number
  readonly baseBackoffMs: number
  readonly queue: FoundBacklog & { readonly activeTenants: number }
  readonly tenants: readonly FoundCongestion[]
}

type QueueRow = [waiting: number, active: number, speed: string, backoff: string, isMeasured: number]
type TenantRow = [
  ...[tenant: string, waiting: number, speed: string, backoff: string, isMeasured: number],
  ...[throttles: number, throttledAt: string, lastBackoff: number, finished: number],
]

/** @param asked - A tenant's token, or at most how many of those that have longest to wait. */
export async function readCongestion(
  requests: Requests,
  asked: { tenant: string } | { most: number },
  nowUs = '',
): Promise<CongestionReply> {
  const reply = await requests.run(script, () => ({
    nowGiven: nowUs,
    name: 'tenant' in asked ? asked.tenant : '',
    most: 'most' in asked ? asked.most : 1,
  }))
  const [, now, base, [waiting, activeTenants, speed, backoff, isMeasured], rows] = reply as [
    string,
    string,
    string,
    QueueRow,
    TenantRow[],
  ]
  return {
    now: Number(now) / 1000,
    baseBackoffMs: Number(base) / 1000,
    queue: { waiting, activeTenants, ...paceOf(speed, backoff, isMeasured) },
    tenants: rows.map(decodeRow),
  }
}

function decodeRow([tenant, waiting, speed, backoff, isMeasured, throttles, at, last, finished]: TenantRow) {
  const throttledAt = Number(at) / 1000
  return {
    tenant,
    waiting,
    ...paceOf(speed, backoff, isMeasured),
    throttles,
    throttledAt,
    lastBackoffMs: last,
    finished,
  }
}

function paceOf(speed: string, backoff: string, isMeasured: number) {
  return { speed: Number(speed), isMeasured: isMeasured === 1, backoffMs: Number(backoff) / 1000 }
}
