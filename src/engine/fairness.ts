import { checkOptions, optional } from '../assert.ts'
import type { Level } from '../store/names.ts'
import type { SettingValues } from '../store/settings.ts'
import { type QueueOptions, queueRules } from './queue-options.ts'

/** What can be changed while running; see QueueOptions. */
export type FairnessSettings = Pick<QueueOptions, 'quantum' | 'alpha' | 'maxProgressMs' | 'maxWaitMs'>

/** How a queue shares and whether it is paused, changes made while running included. */
export interface QueueView extends Required<FairnessSettings> {
  readonly name: string
  /** In ms since 1970; undefined: it is not paused. */
  readonly pausedSince: number | undefined
  readonly levelsPausedSince: Readonly<Record<Level, number | undefined>>
}

const fairnessRules = {
  quantum: optional(queueRules.quantum),
  alpha: optional(queueRules.alpha),
  maxProgressMs: optional(queueRules.maxProgressMs),
  maxWaitMs: optional(queueRules.maxWaitMs),
}

/** What is to be changed, as the scripts read it. */
export function checkFairness(queue: string, settings: FairnessSettings): Partial<SettingValues> {
  const { quantum, alpha, maxProgressMs, maxWaitMs } = checkOptions(`queue "${queue}"`, settings, fairnessRules)
  return {
    ...(quantum === undefined ? {} : { quantum }),
    ...(alpha === undefined ? {} : { alpha }),
    ...(maxProgressMs === undefined ? {} : { max_progress: maxProgressMs * 1000 }),
    ...(maxWaitMs === undefined ? {} : { max_wait: maxWaitMs * 1000 }),
  }
}

/** The other way round. */
export function fairnessOf(values: SettingValues): Required<FairnessSettings> {
  return {
    quantum: values.quantum,
    alpha: values.alpha,
    maxProgressMs: values.max_progress / 1000,
    maxWaitMs: values.max_wait / 1000,
  }
}
