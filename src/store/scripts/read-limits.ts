import type { Requests } from '../requests.ts'
import { readLimits as script } from '../scripts.generated.ts'
import type { LimitScope } from '../settings.ts'

export interface LimitRow {
  readonly scope: LimitScope
  readonly name: string
  readonly kind: 'bucket' | 'concurrency'
  readonly limit: number
  readonly windowUs: number
  readonly burst: number
  readonly jitterUs: number
  readonly available: number
  readonly used: number
  /** Until the next grant; 0 if now. */
  readonly opensInUs: number
  /** Until nothing of it is used any more. */
  readonly fullInUs: number
}

/** As scripts answer it. */
export type EncodedRow = [LimitScope, string, LimitRow['kind'], ...number[]]

/** @param tenant - Its token, or '' for the queue's own limits only. */
export async function readLimits(
  requests: Requests,
  tenant: string,
  nowUs = '',
): Promise<{ activeTenants: number; rows: LimitRow[] }> {
  const reply = await requests.run('read-limits', script, () => ({ nowGiven: nowUs, name: tenant }))
  const [, activeTenants, rows] = reply as ['limits', number, EncodedRow[]]
  return { activeTenants, rows: rows.map(decodeRow) }
}

export function decodeRow([scope, name, kind, ...numbers]: EncodedRow): LimitRow {
  const [limit = 0, windowUs = 0, burst = 0, jitterUs = 0, available = 0, used = 0, opensInUs = 0, fullInUs = 0] =
    numbers
  return { scope, name, kind, limit, windowUs, burst, jitterUs, available, used, opensInUs, fullInUs }
}
