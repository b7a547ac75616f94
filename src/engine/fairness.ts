import { checkOptions, optional } from '../assert.ts'
import type { Level } from '../store/names.ts'
import type { SettingValues } from '../store/settings.ts'
import {
  type CongestionSettings,
  checkBackoffs,
  congestionOf,
  congestionPatch,
  congestionValues,
} from './congestion-options.ts'
import { type QueueOptions, queueRules } from './queue-options.ts'

/** What can be changed while running; see QueueOptions. */
export type FairnessSettings = Pick<QueueOptions, 'quantum' | 'alpha' | 'maxProgressMs' | 'maxWaitMs'>

/** What of a queue's options can be changed while running, for every process. */
export type ChangeableSettings = FairnessSettings & Pick<QueueOptions, 'congestion'>

/** How a queue shares and whether it is paused, changes made while running included. */
export interface QueueView extends Required<FairnessSettings> {
  readonly name: string
  readonly congestion: CongestionSettings
  /** In ms since 1970; undefined: it is not paused. */
  readonly pausedSince: number | undefined
  readonly levelsPausedSince: Readonly<Record<Level, number | undefined>>
}

const changeRules = {
  quantum: optional(queueRules.quantum),
  alpha: optional(queueRules.alpha),
  maxProgressMs: optional(queueRules.maxProgressMs),
  maxWaitMs: optional(queueRules.maxWaitMs),
  congestion: congestionPatch,
}

/** What is to be changed, as the scripts read it. */
export function checkChange(queue: string, settings: ChangeableSettings): Partial<SettingValues> {
  const subject = `queue "${queue}"`
  const chosen = checkOptions(subject, settings, changeRules, checkBackoffs)
  const { quantum, alpha, maxProgressMs, maxWaitMs, congestion } = chosen
  return {
    ...(quantum === undefined ? {} : { quantum }),
    ...(alpha === undefined ? {} : { alpha }),
    ...(maxProgressMs === undefined ? {} : { max_progress: maxProgressMs * 1000 }),
    ...(maxWaitMs === undefined ? {} : { max_wait: maxWaitMs * 1000 }),
    ...congestionValues(congestion ?? {}),
  }
}

/** The other way round. */
export function settingsOf(values: SettingValues): Required<FairnessSettings> & { congestion: CongestionSettings } {
  return {
    quantum: values.quantum,
    alpha: values.alpha,
    maxProgressMs: values.max_progress / 1000,
    maxWaitMs: values.max_wait / 1000,
    congestion: congestionOf(values),
  }
}
