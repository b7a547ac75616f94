const STEP_MS = 50
const LONGEST_MS = 2_000

/** 50 ms × attempt, at most 2 s; up to half of it is left out by chance, so that not all processes come at once. */
export function reconnectDelayMs(attempt: number): number {
  return Math.min(LONGEST_MS, STEP_MS * attempt) * (1 - Math.random() / 2)
}
