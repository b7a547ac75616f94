// Twelve requests a minute may be sent by an idle process, and its heartbeats are ten. What each part says or asks once a
// minute is therefore stretched where there are more than two of them.
const PARTS_AT_FULL_PACE = 2

/**
 * How often the parts of a process send what they send though nothing happens: audits, schedules and aggregates of all its
 * queues. One for each process.
 */
export class IdlePace {
  #parts = 0

  /** One more that sends something every now and then. Returns what takes it off again. */
  join(): () => void {
    this.#parts += 1
    let hasLeft = false
    return () => {
      if (!hasLeft) this.#parts -= 1
      hasLeft = true
    }
  }

  /** @param ms - How long it would wait if it were alone. */
  stretch(ms: number): number {
    return ms * Math.max(1, this.#parts / PARTS_AT_FULL_PACE)
  }
}
