import { styleText } from 'node:util'
import { coloredWithoutControls, linesWithoutControls, withoutControls } from './control-characters.ts'
import { textWidth } from './text-width.ts'

/** What `util.styleText` is asked for here. */
export type Style = 'bold' | 'dim' | 'inverse' | 'red' | 'green' | 'yellow' | 'cyan'

export interface OutputStream {
  write(text: string): unknown
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
}

/**
 * Where a command writes: data on standard output, for programs; talk on standard error, for people. With `--json` all
 * data is JSON, one document a line. What people read has no control characters but colours of `style`.
 */
export class Output {
  readonly isJson: boolean
  /** Whether something that moves may be drawn on standard error. */
  readonly isLive: boolean
  /** Standard error: progress is drawn there. */
  readonly talkStream: OutputStream
  readonly #dataStream: OutputStream
  readonly #environment: NodeJS.ProcessEnv

  constructor(parts: {
    isJson: boolean
    dataStream: OutputStream
    talkStream: OutputStream
    environment: NodeJS.ProcessEnv
  }) {
    this.isJson = parts.isJson
    this.talkStream = parts.talkStream
    this.#dataStream = parts.dataStream
    this.#environment = parts.environment
    const { TERM, CI } = parts.environment
    this.isLive = parts.talkStream.isTTY === true && TERM !== 'dumb' && (CI ?? '') === ''
  }

  /** One line of talk. */
  talk(line: string): void {
    this.talkStream.write(`${coloredWithoutControls(line)}\n`)
  }

  /** Data as it is: one JSON document on one line. */
  json(value: unknown): void {
    this.#dataStream.write(`${JSON.stringify(value)}\n`)
  }

  /** Data a person reads; not called with `--json`. */
  text(lines: string): void {
    const shown = coloredWithoutControls(lines)
    this.#dataStream.write(shown.endsWith('\n') ? shown : `${shown}\n`)
  }

  /** The document with `--json`, the words for a person otherwise. */
  data(value: unknown, words: () => string): void {
    if (this.isJson) this.json(value)
    else this.text(words())
  }

  /** Coloured where standard output may be: a terminal, without NO_COLOR; or FORCE_COLOR. */
  style(style: Style, text: string, stream: 'data' | 'talk' = 'data'): string {
    const target = stream === 'data' ? this.#dataStream : this.talkStream
    return this.#hasColor(target) ? styleText(style, linesWithoutControls(text), { validateStream: false }) : text
  }

  #hasColor(stream: OutputStream): boolean {
    const { NO_COLOR, FORCE_COLOR, TERM } = this.#environment
    if ((NO_COLOR ?? '') !== '' || this.isJson) return false
    if ((FORCE_COLOR ?? '') !== '') return FORCE_COLOR !== '0'
    return stream.isTTY === true && TERM !== 'dumb'
  }
}

export type Cell = string | number | boolean | undefined | null

/** Columns wide enough for what is in them; numbers to the right. */
export function table(heads: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const isNumeric = heads.map((_, column) => rows.some((row) => typeof row[column] === 'number'))
  const cells = [heads, ...rows.map((row) => row.map(shown))]
  const widths = heads.map((_, column) => Math.max(...cells.map((row) => textWidth(row[column] ?? ''))))
  return cells
    .map((row) =>
      row
        .map((cell, column) => pad(cell, widths[column] ?? 0, isNumeric[column] === true))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function shown(cell: Cell): string {
  if (typeof cell === 'number') return new Intl.NumberFormat('en', { maximumFractionDigits: 2 }).format(cell)
  return cell === undefined || cell === null || cell === '' ? '–' : withoutControls(String(cell))
}

function pad(text: string, width: number, toTheRight: boolean): string {
  const space = ' '.repeat(Math.max(0, width - textWidth(text)))
  return toTheRight ? space + text : text + space
}
