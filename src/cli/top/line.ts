import { withoutControls } from '../control-characters.ts'
import type { Style } from '../output.ts'
import { cutToWidth, textWidth } from '../text-width.ts'

/** A piece of a line, in one style. */
export type Segment = string | { readonly text: string; readonly style: Style }

/** One line of the screen, before it is fitted. */
export type Line = readonly Segment[]

/** Colours a text, or not. */
export type Paint = (style: Style, text: string) => string

/** The line in at most so many columns: one that wraps would push all others down. */
export function paintLine(line: Line, width: number, paint: Paint): string {
  let left = width
  let painted = ''
  for (const segment of line) {
    if (left <= 0) break
    const { text, style } = typeof segment === 'string' ? { text: segment, style: undefined } : segment
    const cut = cutToWidth(withoutControls(text), left)
    left -= textWidth(cut)
    painted += style === undefined ? cut : paint(style, cut)
  }
  return painted.trimEnd()
}

export interface Column {
  readonly head: string
  readonly isNumber?: boolean
}

/** Columns as wide as what is in them, numbers to the right; each row with the style of its whole line, if it has one. */
export function tableLines(
  columns: readonly Column[],
  rows: readonly { readonly cells: readonly Segment[]; readonly style?: Style | undefined }[],
): Line[] {
  const widths = columns.map(({ head }, at) =>
    Math.max(textWidth(head), ...rows.map(({ cells }) => textWidth(textOf(cells[at])))),
  )
  const padded = (cell: Segment | undefined, at: number): Segment => {
    const text = textOf(cell)
    const space = ' '.repeat(Math.max(0, (widths[at] ?? 0) - textWidth(text)))
    const whole = columns[at]?.isNumber ? `${space}${text}  ` : `${text}${space}  `
    return typeof cell === 'object' ? { text: whole, style: cell.style } : whole
  }
  const heads: Segment[] = columns.map(({ head }, at) => ({ text: textOf(padded(head, at)), style: 'dim' }))
  const body = rows.map(({ cells, style }): Line => {
    const line = columns.map((_, at) => padded(cells[at], at))
    return style === undefined ? line : [{ text: line.map(textOf).join(''), style }]
  })
  return [heads, ...body]
}

function textOf(cell: Segment | undefined): string {
  return typeof cell === 'object' ? cell.text : (cell ?? '')
}
