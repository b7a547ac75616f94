import { wallClockOffset } from './wall-clock.ts'

/**
 * What a time zone adds to UTC, as scripts can read it: they know no zones. Pairs of an instant and the offset from then
 * on, both in seconds, from the beginning of last year on. Cut to whole years, so that processes that declare the same
 * limit on different days declare the same.
 */
export function zoneOffsets(timeZone: string, now: Date = new Date()): readonly number[] {
  const offsetMs = wallClockOffset(timeZone)
  const offsetAt = (ms: number) => offsetMs(ms) / 1_000
  const year = now.getUTCFullYear()
  const end = Date.UTC(year + YEARS_AHEAD, 0, 1)
  let at = Date.UTC(year - 1, 0, 1)
  let offset = offsetAt(at)
  const pairs = [0, offset]
  while (at < end) {
    const next = at + STEP_MS
    if (offsetAt(next) !== offset) {
      const change = firstChange(offsetAt, at, next)
      offset = offsetAt(change)
      pairs.push(change / 1_000, offset)
      at = change
    } else at = next
  }
  return pairs
}

export function isTimeZone(name: unknown): name is string {
  if (typeof name !== 'string') return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

const YEARS_AHEAD = 5
// No zone changes twice in a week.
const STEP_MS = 7 * 86_400_000

/** To the second; zones change at full ones. */
function firstChange(offsetAt: (ms: number) => number, before: number, after: number): number {
  const old = offsetAt(before)
  let low = before / 1_000
  let high = after / 1_000
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (offsetAt(middle * 1_000) === old) low = middle
    else high = middle
  }
  return high * 1_000
}
