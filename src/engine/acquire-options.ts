import { checkOptions, integer, oneOf } from '../assert.ts'
import { InvalidOptionsError } from '../errors.ts'
import { type Level, levels } from '../store/names.ts'
import type { Asked } from './acquirer.ts'

export interface AcquireOptions {
  /**
   * All of them or none. A bucket saves up for more than its burst.
   * @default 1
   */
  permits?: number
  /**
   * A `high` caller that is refused leaves a mark until the instant it is told; `low` ones are refused meanwhile.
   * @default 'normal'
   */
  level?: Level
  /**
   * What to answer while Redis does not: `allow` gives permits that nobody counts. They are counted in `unavailable` and
   * logged.
   * @default 'deny'
   */
  onUnavailable?: 'deny' | 'allow'
}

const LARGEST = 1_000_000_000

const acquireRules = {
  permits: integer({ min: 1, max: LARGEST, default: 1 }),
  level: oneOf(levels, { default: 'normal' }),
  onUnavailable: oneOf(['deny', 'allow'], { default: 'deny' }),
}

const defaults = checkOptions('limits.acquire', {}, acquireRules)

export function checkAcquire(limits: string | readonly string[], options: AcquireOptions | undefined): Asked {
  if (typeof limits !== 'string' && !isListOfNames(limits)) {
    const problem = 'must be the name of a limit, or a list of different ones'
    throw new InvalidOptionsError('limits.acquire', [{ path: 'names', problem }])
  }
  const chosen = options === undefined ? defaults : checkOptions('limits.acquire', options, acquireRules)
  const { permits, level, onUnavailable } = chosen
  return { limits, permits, level, onUnavailable }
}

function isListOfNames(names: readonly string[]): boolean {
  const isList = Array.isArray(names) && names.length > 0 && names.every((each) => typeof each === 'string')
  return isList && new Set(names).size === names.length
}
