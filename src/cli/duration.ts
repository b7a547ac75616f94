import { parseDuration as parseWithUnit } from '../engine/duration.ts'

/** `850 ms`, `12 s`, `3 min 20 s`, `2 h 5 min`: as a person says it. */
export function sayDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  const seconds = Math.round(ms / 1_000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return seconds % 60 === 0 ? `${minutes} min` : `${minutes} min ${seconds % 60} s`
  const hours = Math.floor(minutes / 60)
  return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`
}

/** `30s`, `5min`, `250ms`; a bare number is seconds. Undefined when it is none of that. */
export function parseDuration(text: string): number | undefined {
  return parseWithUnit(/^\s*\d+(\.\d+)?\s*$/.test(text) ? `${text.trim()}s` : text)
}
