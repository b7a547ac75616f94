const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** `250ms`, `30s`, `15m` or `15min`, `2h`, `1d`, in ms. Undefined when it is none of that. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]+)$/.exec(text.trim())
  const unit = match && unitMs[match[2] as string]
  return match && unit ? Math.round(Number(match[1]) * unit) : undefined
}
