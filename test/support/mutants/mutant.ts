import type { Check, CheckerOptions } from '../checker.ts'
import type { HistoryEvent } from '../history.ts'
import type { EditableHistory } from './editable-history.ts'

export interface Mutant {
  /** What went wrong in the world that this history records. */
  name: string
  /** The check that has to notice; others may too. */
  check: Check
  /** Whether the history it starts from contains faults. */
  faults: boolean
  break: (history: EditableHistory) => HistoryEvent[]
  options?: Partial<CheckerOptions>
}

/** Above every fence of a generated history. */
export const HIGHEST_FENCE = '999999'
/** After everything in a generated history, on its clock. */
export const LATE = 500_000
