/** What a limit has learnt from an upstream that pushed back: closed until then, and at a lower rate. */

const SECOND = 1_000_000
const CLIMB = 0.05
const HELD_FOR_S = 10

export interface PushbackState {
  closedUntil: number
  share: number
  cutAt: number
  ceiling: number
}

/** Up by a twentieth of the rate a second, with ten seconds' rest just below where it was pushed back. */
export function shareOf({ share, cutAt, ceiling, closedUntil }: PushbackState, now: number): number {
  if (share >= 1) return 1
  const seconds = Math.max(0, now - Math.max(cutAt, closedUntil)) / SECOND
  const held = Math.max(share, ceiling * 0.95)
  const climbed = seconds * CLIMB
  if (share + climbed <= held) return share + climbed
  return Math.min(1, held + Math.max(0, climbed - (held - share) - HELD_FOR_S * CLIMB))
}

export function learnPushback(
  state: PushbackState | undefined,
  fence: number,
  closedUntil: number,
  now: number,
  lastFence: number,
): PushbackState {
  const known = state ?? { closedUntil: 0, share: 1, cutAt: 0, ceiling: 1 }
  const closed = { ...known, closedUntil: Math.max(known.closedUntil, closedUntil) }
  if (fence < known.cutAt) return closed
  const share = shareOf(known, now)
  return { ...closed, share: Math.max(0.01, share * 0.7), cutAt: Math.max(now, lastFence + 1), ceiling: share }
}

/** As it is stored: a share has four digits. */
export function pushbackText({ closedUntil, share, cutAt, ceiling }: PushbackState): string {
  return `${closedUntil}:${share.toFixed(4)}:${cutAt}:${ceiling.toFixed(4)}`
}

export function readPushback(text: string): PushbackState {
  const [closedUntil = 0, share = 1, cutAt = 0, ceiling = 1] = text.split(':').map(Number)
  return { closedUntil, share, cutAt, ceiling }
}
