import xterm from '@xterm/headless'

/** A terminal as a person sees it, without a window. */
export class VirtualTerminal {
  readonly #terminal: xterm.Terminal
  /** All that was ever written to it. */
  raw = ''

  constructor(size: { columns: number; rows: number } = { columns: 100, rows: 24 }) {
    this.#terminal = new xterm.Terminal({ cols: size.columns, rows: size.rows, allowProposedApi: true })
  }

  write(text: string): void {
    this.raw += text
    this.#terminal.write(text)
  }

  resize({ columns, rows }: { columns: number; rows: number }): void {
    this.#terminal.resize(columns, rows)
  }

  /** The lines that are visible, without what only fills them up. */
  get lines(): string[] {
    const { active } = this.#terminal.buffer
    return Array.from(
      { length: this.#terminal.rows },
      (_, at) => active.getLine(active.viewportY + at)?.translateToString(true) ?? '',
    )
  }

  get text(): string {
    return this.lines.join('\n')
  }

  /** Whether a program has the screen; the shell's own comes back afterwards. */
  get isAlternate(): boolean {
    return this.#terminal.buffer.active.type === 'alternate'
  }

  /** The line that is marked, if one is. */
  get markedLine(): string | undefined {
    const { active } = this.#terminal.buffer
    return this.lines.find((_, at) => active.getLine(at)?.getCell(0)?.isInverse())
  }

  /** Waits until the screen shows something like this. */
  async shows(pattern: RegExp): Promise<void> {
    await this.#until(
      () => pattern.test(this.text),
      () => `the screen never showed ${pattern}:\n${this.text}`,
    )
  }

  /** Waits until it does not any more. */
  async hides(pattern: RegExp): Promise<void> {
    await this.#until(
      () => !pattern.test(this.text),
      () => `the screen still shows ${pattern}:\n${this.text}`,
    )
  }

  async #until(isReached: () => boolean, problem: () => string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const look = () => {
        if (!isReached()) return
        clearTimeout(timer)
        parsed.dispose()
        resolve()
      }
      const timer = setTimeout(() => {
        parsed.dispose()
        reject(new Error(problem()))
      }, 20_000)
      const parsed = this.#terminal.onWriteParsed(look)
      // What was written before must be there first.
      this.#terminal.write('', look)
    })
  }
}
