import type { Level } from '../names.ts'
import type { DeadReason, DelayReason } from '../reasons.ts'
import type { Requests } from '../requests.ts'
import { explainJob as script } from '../scripts.generated.ts'
import { searchLeases } from '../search-leases.ts'
import type { ExplainReply, TenantFacts } from './explain-tenant.ts'
import type { JobAddress, JobState } from './read-job.ts'
import { decodeRow, type LimitRow } from './read-limits.ts'

/** What a script sees on the way of one job, in ms since 1970. What is missing is not so. */
export interface JobFacts extends TenantFacts {
  readonly job: {
    readonly key: string
    readonly level: Level
    readonly state: JobState
    readonly due?: number
    readonly reason?: DelayReason
    readonly died_of?: DeadReason
    readonly attempts?: number
    readonly stalls?: number
    readonly throttles?: number
    readonly since?: number
    /** Base 36. */
    readonly created?: string
    readonly action?: { readonly state: string; readonly is_sealed: boolean; readonly ended?: number }
    readonly lane?: {
      readonly ahead: number
      readonly lanes: number
      readonly lanes_before: number
      /** Key of the job that an ordered lane waits for. */
      readonly busy?: string
    }
    readonly client?: string
    readonly fence?: string
    readonly claimed?: number
    readonly lease?: number
    readonly is_canceling?: boolean
  }
}

/** Undefined: there is no such job. */
export async function explainJob(
  requests: Requests,
  address: JobAddress,
  nowUs = '',
): Promise<{ facts: JobFacts; limits: LimitRow[] } | undefined> {
  const { jobKey: jobGiven, tenant: tenantGiven, action: actionGiven, digest } = address
  const args = { nowGiven: nowUs, jobGiven, tenantGiven, actionGiven, digest }
  const reply = await searchLeases((leasesFrom) => requests.run(script, () => ({ ...args, leasesFrom })))
  if (reply[0] === 'unknown') return undefined
  const [, facts, rows] = reply as ExplainReply
  return { facts: JSON.parse(facts) as JobFacts, limits: rows.map(decodeRow) }
}
