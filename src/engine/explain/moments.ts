/** Moments as people read them: when, and how long from now. @param at - Now. */
export function moment(ms: number, at: number): string {
  const distance = ms - at
  const when = distance > 0 ? `in ${lasting(distance)}` : `${lasting(-distance)} ago`
  return `${new Date(ms).toISOString()} (${when})`
}

const units = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
] as const

export function lasting(ms: number): string {
  for (const [size, unit] of units) if (ms >= size) return `${Math.round((ms / size) * 10) / 10} ${unit}`
  return `${Math.round(ms)} ms`
}
