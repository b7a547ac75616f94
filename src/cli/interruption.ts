import type { ExitName } from './exit-codes.ts'
import { exitCodes } from './exit-codes.ts'

// A terminal that is closed asks as politely as SIGTERM.
const exitOfSignal = { SIGINT: 'interrupted', SIGTERM: 'terminated', SIGHUP: 'terminated' } as const satisfies Record<
  string,
  ExitName
>

/**
 * Ctrl-C and SIGTERM while a command does long work. The first asks it to come to an end; a second one ends the process
 * at once.
 */
export class Interruption {
  readonly #controller = new AbortController()
  readonly #listeners: (() => void)[] = []
  #exit: ExitName | undefined

  /** Aborted by the first signal. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** How the process ends because of it; undefined while nobody has asked. */
  get exit(): ExitName | undefined {
    return this.#exit
  }

  /** @param onFirst - Says what happens now. */
  static listen(onFirst: () => void): Interruption {
    const interruption = new Interruption()
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      const listener = () => interruption.#onSignal(exitOfSignal[signal], onFirst)
      process.on(signal, listener)
      interruption.#listeners.push(() => process.off(signal, listener))
    }
    return interruption
  }

  /** Resolves with the first signal. */
  asked(): Promise<void> {
    return new Promise((resolve) => {
      if (this.signal.aborted) resolve()
      else this.signal.addEventListener('abort', () => resolve(), { once: true })
    })
  }

  /** Signals end the process again as they do by themselves. */
  ignore(): void {
    for (const remove of this.#listeners) remove()
  }

  #onSignal(exit: ExitName, onFirst: () => void): void {
    if (this.#exit !== undefined) process.exit(exitCodes[exit].code)
    this.#exit = exit
    onFirst()
    this.#controller.abort(new Error(exitCodes[exit].meaning))
  }
}
