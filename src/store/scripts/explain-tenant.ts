import type { Level } from '../names.ts'
import type { Requests } from '../requests.ts'
import { explainTenant as script } from '../scripts.generated.ts'
import { decodeRow, type EncodedRow, type LimitRow } from './read-limits.ts'

/** How a tenant stands on a level where it has work. */
export interface StandFacts {
  readonly level: Level
  /** Its lanes that take turns there. */
  readonly lanes: number
  readonly lane?: string
  readonly score?: number
  /** Since when it has been able to run, or out of line. */
  readonly since?: number
  readonly in_line: boolean
  /** How many go before it; missing while it is out of line. */
  readonly rank?: number
  /** Tenants in line. */
  readonly ready: number
  readonly overdue: boolean
}

/** What a script sees on the way to a tenant's next job, in ms since 1970. What is missing is not so. */
export interface TenantFacts {
  readonly now: number
  readonly queue: {
    readonly paused?: number
    readonly levels_paused: Readonly<Partial<Record<Level, number>>>
    readonly last_claim?: number
    readonly max_wait: number
  }
  /** The level on which its next job stands; missing where it has none. Of a job: see the job. */
  readonly level?: Level
  /** What the job asked about costs; of a tenant, its next one. */
  readonly cost: number
  /** Of limits that do not grant that much, `<scope>/<name>` → since when, where that is known. */
  readonly closed_limits: Readonly<Record<string, number>>
  readonly workers: { readonly idle: number; readonly busy: number; readonly running: number }
  readonly tenant: {
    readonly waiting: number
    readonly delayed: number
    readonly running: number
    readonly weight: number
    readonly base: number
    readonly override?: Level
    readonly paused?: number
    /** An empty list is an object. */
    readonly stands: readonly StandFacts[] | Readonly<Record<string, never>>
    readonly parked?: {
      readonly limit: string
      readonly until_ms?: number
      readonly since?: number
      readonly is_lifted: boolean
    }
    /** Keys of jobs that its ordered lanes wait for, where none of its lanes takes turns. */
    readonly busy?: readonly string[] | Readonly<Record<string, never>>
  }
}

export type ExplainReply = ['explained', facts: string, rows: EncodedRow[]]

/** @param tenant - Its token. */
export async function explainTenant(
  requests: Requests,
  tenant: string,
  nowUs = '',
): Promise<{ facts: TenantFacts; limits: LimitRow[] }> {
  const reply = await requests.run(script, () => ({ nowGiven: nowUs, name: tenant }))
  const [, facts, rows] = reply as ExplainReply
  return { facts: JSON.parse(facts) as TenantFacts, limits: rows.map(decodeRow) }
}
