import { sayDuration } from './duration.ts'
import type { Output } from './output.ts'
import { textWidth } from './text-width.ts'

/** What is known of one piece of long work. */
export interface Progress {
  readonly label: string
  readonly done: number
  /** Undefined: more may come, so there is no share of the whole. */
  readonly total: number | undefined
  readonly failed?: number
  readonly perSecond?: number | undefined
  readonly etaMs?: number | undefined
  /** A word at the end, such as the state. */
  readonly note?: string | undefined
}

const BAR_WIDTH = 24
const NARROWEST = 40
const COLUMNS_UNKNOWN = 80
/** Redrawing more often only flickers. */
const LIVE_EVERY_MS = 100
/** Without a terminal each state is a line that stays; what takes less time than this has none but its end. */
const LINES_EVERY_MS = 1_000

/**
 * Bars on standard error, one for each piece of work, drawn over each other. Where standard error is no terminal they
 * are plain lines, and few.
 */
export class ProgressBars {
  readonly #output: Output
  #drawnLines = 0
  #lastAt: number
  #lastLines = new Map<string, string>()

  constructor(output: Output) {
    this.#output = output
    this.#lastAt = output.isLive ? Number.NEGATIVE_INFINITY : performance.now()
  }

  /** Shows the present state, unless the last one is too fresh. */
  update(rows: readonly Progress[]): void {
    const now = performance.now()
    if (now - this.#lastAt < (this.#output.isLive ? LIVE_EVERY_MS : LINES_EVERY_MS)) return
    this.#lastAt = now
    this.#show(rows)
  }

  /** Shows the last state, which stays. */
  end(rows: readonly Progress[]): void {
    this.#show(rows)
    this.#drawnLines = 0
  }

  /** Says a line above the bars. */
  say(line: string): void {
    this.clear()
    this.#output.talk(line)
    if (this.#output.isLive) this.#lastAt = Number.NEGATIVE_INFINITY
  }

  #show(rows: readonly Progress[]): void {
    const labelWidth = Math.max(0, ...rows.map(({ label }) => textWidth(label)))
    if (this.#output.isLive) {
      const columns = Math.max(NARROWEST, this.#output.talkStream.columns ?? COLUMNS_UNKNOWN)
      const lines = rows.map((row) => fitted(this.#barLine(row, labelWidth), columns - 1))
      this.clear()
      for (const line of lines) this.#output.talk(line)
      this.#drawnLines = lines.length
      return
    }
    for (const row of rows) {
      const line = `${row.label}: ${factsOf(row).join(', ')}`
      if (this.#lastLines.get(row.label) !== line) this.#output.talk(line)
      this.#lastLines.set(row.label, line)
    }
  }

  /** Takes the bars away. */
  clear(): void {
    if (this.#drawnLines > 0) this.#output.talkStream.write(`\x1b[${this.#drawnLines}A\x1b[0J`)
    this.#drawnLines = 0
  }

  #barLine(row: Progress, labelWidth: number): string {
    const share = row.total === undefined || row.total === 0 ? 0 : Math.min(1, row.done / row.total)
    const filled = Math.round(share * BAR_WIDTH)
    const bar = this.#output.style('cyan', '█'.repeat(filled), 'talk') + '░'.repeat(BAR_WIDTH - filled)
    const label = row.label + ' '.repeat(labelWidth - textWidth(row.label))
    return `${label} ${bar} ${factsOf(row).join('  ')}`
  }
}

const grouped = (count: number) => count.toLocaleString('en')

function factsOf({ done, total, failed = 0, perSecond, etaMs, note }: Progress): string[] {
  const isOver = total !== undefined && done >= total
  return [
    total === undefined ? grouped(done) : `${grouped(done)}/${grouped(total)}`,
    ...(total === undefined || total === 0 ? [] : [`${Math.floor((100 * done) / total)} %`]),
    ...(perSecond === undefined || isOver ? [] : [`${grouped(Math.round(perSecond))}/s`]),
    ...(etaMs === undefined || isOver ? [] : [`${sayDuration(etaMs)} left`]),
    ...(failed > 0 ? [`${grouped(failed)} failed`] : []),
    ...(note === undefined ? [] : [note]),
  ]
}

/** Cut to the width of the terminal: a line that wraps cannot be drawn over. */
function fitted(line: string, width: number): string {
  if (textWidth(line) <= width) return line
  let cut = line
  while (textWidth(cut) > width - 1) cut = cut.slice(0, -1)
  return `${cut}…\x1b[0m`
}
