import type { Requests } from '../requests.ts'
import { runDelayedJobs as script } from '../scripts.generated.ts'

/** Which delayed jobs are meant; empty text means any. Names are tokens. */
export interface DelayedFilter {
  readonly tenant: string
  readonly type: string
  readonly action: string
  readonly reason: string
}

/** @returns `cursor` undefined: all were looked at. */
export async function runDelayedJobs(
  requests: Requests,
  step: { cursor: string; looks: number; filter: DelayedFilter; nowUs?: string },
): Promise<{ cursor: string | undefined; looked: number; due: number }> {
  const { filter } = step
  const reply = await requests.run(script, () => ({
    nowGiven: step.nowUs ?? '',
    cursor: step.cursor,
    looks: step.looks,
    tenantWanted: filter.tenant,
    typeWanted: filter.type,
    actionWanted: filter.action,
    reasonWanted: filter.reason,
  }))
  const [, cursor, looked, due] = reply as ['hastened', string, number, number]
  return { cursor: cursor === '0' ? undefined : cursor, looked, due }
}
