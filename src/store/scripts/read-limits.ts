import type { Requests } from '../requests.ts'
import { readLimits as script } from '../scripts.generated.ts'
import type { LimitRule, LimitScope } from '../settings.ts'

export interface LimitRow {
  readonly scope: LimitScope
  readonly name: string
  readonly kind: LimitRule['kind']
  readonly limit: number
  readonly windowUs: number
  readonly burst: number
  /** What it allows for now on the way to the upstream, and what its definition says. */
  readonly jitterUs: number
  readonly definedJitterUs: number
  readonly available: number
  readonly used: number
  /** Until the next grant, or of a job that is asked about, until its own; 0 if now, -1 if nobody knows. */
  readonly opensInUs: number
  /** Until nothing of it is used any more. */
  readonly fullInUs: number
  /** What an upstream that pushed back has left of its rate, in thousandths. */
  readonly share: number
  /** For how long such an upstream has closed it. */
  readonly pushedForUs: number
  /** The store had lost what was counted in this window: what is used was in part assumed. */
  readonly isEstimated: boolean
}

/** As scripts answer it. */
export type EncodedRow = [LimitScope, string, LimitRow['kind'], ...number[]]

/** @param tenant - Its token, or '' for the queue's own limits only. */
export async function readLimits(
  requests: Requests,
  tenant: string,
  nowUs = '',
): Promise<{ activeTenants: number; rows: LimitRow[] }> {
  const reply = await requests.run(script, () => ({ nowGiven: nowUs, name: tenant }))
  const [, activeTenants, rows] = reply as ['limits', number, EncodedRow[]]
  return { activeTenants, rows: rows.map(decodeRow) }
}

export function decodeRow([scope, name, kind, ...numbers]: EncodedRow): LimitRow {
  const [limit = 0, windowUs = 0, burst = 0, jitterUs = 0, available = 0, used = 0, opensInUs = 0, fullInUs = 0] =
    numbers
  const [share = 1_000, pushedForUs = 0, estimated = 0, definedJitterUs = 0] = numbers.slice(8)
  const measured = { available, used, opensInUs, fullInUs, share, pushedForUs, isEstimated: estimated === 1 }
  return { scope, name, kind, limit, windowUs, burst, jitterUs, definedJitterUs, ...measured }
}
