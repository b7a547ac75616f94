import { sayDuration } from '../duration.ts'

export interface TimeTick {
  readonly ms: number
  readonly label: string
}

const MOST_TICKS = 7
const [SECOND, MINUTE, HOUR, DAY] = [1_000, 60_000, 3_600_000, 86_400_000] as const
/** What a clock is read by. Below a second tenths of the next, above a day whole days. */
const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 3, 4, 6, 12].map((hours) => hours * HOUR),
  ...[1, 2, 7, 14, 30, 60, 90].map((days) => days * DAY),
]

/** Round instants from 0 up to the end. */
export function timeTicks(endMs: number): TimeTick[] {
  const step = STEPS.find((each) => endMs / each <= MOST_TICKS) ?? endMs
  const count = Math.floor(endMs / step)
  return Array.from({ length: count + 1 }, (_, at) => ({ ms: at * step, label: labelOf(at * step, step) }))
}

function labelOf(ms: number, step: number): string {
  if (ms === 0) return '0'
  return step >= DAY ? `${ms / DAY} d` : sayDuration(ms)
}
