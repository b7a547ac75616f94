/**
 * The time that the steps of one call may take together. What lies between two steps, such as waiting for the limits,
 * costs nothing.
 */
export class TimeBudget {
  readonly #timeoutMs: number
  readonly #outer: AbortSignal
  #spentMs = 0

  /** @param outer - The job's own signal: aborted, it ends a step as well. */
  constructor(timeoutMs: number, outer: AbortSignal) {
    this.#timeoutMs = timeoutMs
    this.#outer = outer
  }

  get spentMs(): number {
    return this.#spentMs
  }

  /**
   * Rejects with the error that `onTimeout` makes when the time is up, and with the reason of the job's signal; at once,
   * also when the step takes its time to notice that it was aborted.
   */
  async spend<T>(step: (signal: AbortSignal) => Promise<T>, onTimeout: () => Error): Promise<T> {
    this.#outer.throwIfAborted()
    const controller = new AbortController()
    const abort = () => controller.abort(this.#outer.reason)
    this.#outer.addEventListener('abort', abort)
    const timer = setTimeout(() => controller.abort(onTimeout()), this.#timeoutMs - this.#spentMs)
    const start = performance.now()
    try {
      return await Promise.race([aborted(controller.signal), step(controller.signal)])
    } finally {
      this.#spentMs += performance.now() - start
      clearTimeout(timer)
      this.#outer.removeEventListener('abort', abort)
    }
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
