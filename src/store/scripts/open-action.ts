import type { Level } from '../names.ts'
import type { Requests } from '../requests.ts'
import { openAction as script } from '../scripts.generated.ts'

/** What an action is, from its first submit on. */
export interface ActionRules {
  /** Of its jobs, where they do not say otherwise; '' without one. */
  readonly type: string
  readonly level: Level
  /** The token of its lane. */
  readonly lane: string
  readonly keepResults: boolean
  readonly failFast: boolean
  readonly maxFailureRatio: number | undefined
  /** 0: never. */
  readonly sealTimeoutMs: number
}

export type ActionState = 'CREATED' | 'DISPATCHED' | 'RUNNING' | 'AGGREGATING' | 'COMPLETED' | 'FAILED' | 'CANCELED'

export interface OpenedAction {
  /** False: there was one of that name, which stays as it is. */
  readonly isNew: boolean
  readonly state: ActionState
  readonly isSealed: boolean
  /** Jobs its producers have sent so far, known ids included. */
  readonly received: number
  readonly level: Level
  readonly lane: string
  /** As whoever made it has said; '' if that was nothing. */
  readonly begunBy: string
}

/**
 * @param webhook - JSON for whoever tells it; '' for none.
 * @param begunBy - Kept with a new one, so that its caller knows it again.
 */
export async function openAction(
  requests: Requests,
  action: { tenant: string; name: string; rules: ActionRules; webhook: string; begunBy?: string },
  { nowUs = '', signal }: { nowUs?: string; signal?: AbortSignal | undefined } = {},
): Promise<OpenedAction> {
  const { rules } = action
  const rulesJson = JSON.stringify({
    type: rules.type,
    level: rules.level,
    lane: rules.lane,
    keep_results: rules.keepResults,
    fail_fast: rules.failFast,
    max_failure_ratio: rules.maxFailureRatio,
    seal_timeout: rules.sealTimeoutMs * 1000,
  })
  const args = (request: number) => ({
    nowGiven: nowUs,
    request,
    tenant: action.tenant,
    name: action.name,
    rulesJson,
    webhook: action.webhook,
    begunBy: action.begunBy ?? '',
  })
  const reply = await requests.run(script, args, { signal })
  type Opened = ['opened', number, ActionState, number, number, Level, string, string]
  const [, isNew, state, sealed, received, level, lane, begunBy] = reply as Opened
  return { isNew: isNew === 1, state, isSealed: sealed === 1, received, level, lane, begunBy }
}
