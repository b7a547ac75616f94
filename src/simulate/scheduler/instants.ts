/** In µs, as the scripts have them. */

/** Later than any instant: what waits for an event rather than for a moment. */
export const NEVER = 9e15

/** By how much the clock moves on with a turn, at least: room for those who come into line right before it. */
export const TURN = 64
