import { writeSync } from 'node:fs'
import { emitKeypressEvents } from 'node:readline'
import type { Key } from './state.ts'

/** What of standard output a screen needs. */
export interface ScreenOutput {
  write(text: string): unknown
  readonly columns?: number | undefined
  readonly rows?: number | undefined
  /** Of a real terminal: to put it right when the process has no time left for streams. */
  readonly fd?: number
  on(event: 'resize', listener: () => void): unknown
  off(event: 'resize', listener: () => void): unknown
}

/** What of standard input it needs; keys come only from a terminal. */
export interface ScreenInput extends NodeJS.ReadableStream {
  readonly isTTY?: boolean
  setRawMode?(isRaw: boolean): unknown
  unref?(): unknown
}

// What terminals understand, by what it does.
const ENTER_ALTERNATE = '\x1b[?1049h'
const LEAVE_ALTERNATE = '\x1b[?1049l'
const HIDE_CURSOR = '\x1b[?25l'
const SHOW_CURSOR = '\x1b[?25h'
const NO_STYLE = '\x1b[0m'
const CLEAR = '\x1b[2J'
const ERASE_TO_END_OF_LINE = '\x1b[K'
/** What stands between is shown at once, by terminals that know it; others ignore it. */
const BEGIN_UPDATE = '\x1b[?2026h'
const END_UPDATE = '\x1b[?2026l'

const RESTORE = `${END_UPDATE}${NO_STYLE}${SHOW_CURSOR}${LEAVE_ALTERNATE}`

const FALLBACK = { columns: 80, rows: 24 }

/**
 * The whole terminal, for as long as it is open. Only lines that have changed are written, so that nothing flickers. Whatever
 * ends the process (but SIGKILL), the terminal is as before: the screen of the shell is back, with its cursor and its keys.
 */
export class Screen {
  readonly #output: ScreenOutput
  readonly #input: ScreenInput
  readonly #onKey: (key: Key) => void
  readonly #onResize: () => void
  #shown: string[] = []
  #isOpen = false

  constructor(parts: {
    output: ScreenOutput
    input: ScreenInput
    onKey: (key: Key) => void
    onResize: () => void
  }) {
    this.#output = parts.output
    this.#input = parts.input
    this.#onKey = parts.onKey
    this.#onResize = parts.onResize
  }

  get columns(): number {
    return this.#output.columns ?? FALLBACK.columns
  }

  get rows(): number {
    return this.#output.rows ?? FALLBACK.rows
  }

  open(): void {
    this.#isOpen = true
    this.#output.write(`${ENTER_ALTERNATE}${HIDE_CURSOR}${CLEAR}`)
    this.#output.on('resize', this.#resized)
    if (this.#input.isTTY) {
      emitKeypressEvents(this.#input)
      this.#input.setRawMode?.(true)
      this.#input.on('keypress', this.#pressed)
      this.#input.resume()
    }
    process.on('exit', this.#restoreNow)
    // Before the error is printed: on the other screen nobody would ever see it.
    process.on('uncaughtExceptionMonitor', this.#restoreNow)
  }

  /** Draws what has changed since the last time. */
  draw(lines: readonly string[]): void {
    if (!this.#isOpen) return
    const changes = lines.flatMap((line, at) =>
      line === this.#shown[at] ? [] : [`\x1b[${at + 1};1H${line}${NO_STYLE}${ERASE_TO_END_OF_LINE}`],
    )
    this.#shown = [...lines]
    if (changes.length > 0) this.#output.write(`${BEGIN_UPDATE}${changes.join('')}${END_UPDATE}`)
  }

  /** The next drawing draws everything. */
  forget(): void {
    this.#shown = []
    if (this.#isOpen) this.#output.write(CLEAR)
  }

  close(): void {
    if (!this.#isOpen) return
    this.#letGo()
    this.#output.write(RESTORE)
  }

  #letGo(): void {
    this.#isOpen = false
    this.#shown = []
    this.#output.off('resize', this.#resized)
    process.off('exit', this.#restoreNow)
    process.off('uncaughtExceptionMonitor', this.#restoreNow)
    if (!this.#input.isTTY) return
    this.#input.off('keypress', this.#pressed)
    this.#input.setRawMode?.(false)
    this.#input.pause()
    this.#input.unref?.()
  }

  readonly #resized = (): void => {
    this.forget()
    this.#onResize()
  }

  readonly #pressed = (text: string | undefined, key: { name?: string; ctrl?: boolean } | undefined): void => {
    this.#onKey({ text: text ?? '', name: key?.name ?? '', isControl: key?.ctrl ?? false })
  }

  /** At the end of the process nothing that is only asked for is done any more. */
  readonly #restoreNow = (): void => {
    if (!this.#isOpen) return
    this.#letGo()
    if (this.#output.fd === undefined) this.#output.write(RESTORE)
    else writeSync(this.#output.fd, RESTORE)
  }
}
