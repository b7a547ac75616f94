import { withResolvers } from './with-resolvers.ts'

/** Long enough for a busy machine: what waits for longer hangs. */
const PATIENCE_MS = 20_000

/** Something that happens a number of times. */
export class Countdown {
  readonly reached: Promise<void>
  #left: number
  #reach: () => void = () => {}

  constructor(times: number) {
    this.#left = times
    const { promise, resolve, reject } = withResolvers<void>()
    const timer = setTimeout(() => reject(new Error(`${this.#left} of ${times} are still missing`)), PATIENCE_MS)
    this.#reach = () => {
      clearTimeout(timer)
      resolve()
    }
    this.reached = promise
    // Awaited later, if ever: a test that has failed before must not fail again.
    promise.catch(() => {})
  }

  tick(): void {
    this.#left -= 1
    if (this.#left === 0) this.#reach()
  }
}
