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

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, min: 60_000, m: 60_000, h: 3_600_000 }

/** `30s`, `5min`, `250ms`; a bare number is seconds. Undefined when it is none of that. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/.exec(text.trim())
  const unit = match && unitMs[match[2] === '' ? 's' : (match[2] ?? '')]
  return match && unit ? Math.round(Number(match[1]) * unit) : undefined
}
