import { Histogram } from './histogram.ts'

/** A script blocks Redis for some ms at most; what takes longer waited, or was on its way. */
const seconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]

/** How long scripts took, by their names: from the call until their answer was read, the way there and back included. */
export class ScriptTimes {
  readonly #byScript = new Map<string, Histogram>()

  observe(script: string, ms: number): void {
    let times = this.#byScript.get(script)
    if (!times) {
      times = new Histogram(seconds)
      this.#byScript.set(script, times)
    }
    times.observe(ms / 1000)
  }

  /** In seconds. */
  get byScript(): ReadonlyMap<string, Histogram> {
    return this.#byScript
  }
}
