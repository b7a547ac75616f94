import type { Figures } from './measure.ts'
import { isKept, PROMISED, type Promised } from './promises.ts'

/** The promised figures with what they must reach, then all others. */
export function printTable(figures: Figures, write: (line: string) => void): void {
  const promised = PROMISED.filter(({ key }) => figures[key] !== undefined)
  const rows = [
    ['measure', 'figure', 'must', 'aim', ''],
    ...promised.map((promise) => {
      const figure = figures[promise.key] as number
      return [promise.label, shown(figure), bound(promise), aim(promise), isKept(promise, figure) ? 'ok' : 'SHORT']
    }),
  ]
  for (const line of aligned(rows)) write(line)
  write('')
  const keys = new Set(promised.map(({ key }) => key))
  const raw = Object.entries(figures).filter(([key]) => !keys.has(key))
  for (const line of aligned(raw.map(([key, figure]) => [key, shown(figure)]))) write(line)
}

function bound({ atLeast, atMost }: Promised): string {
  return atLeast === undefined ? `≤ ${atMost}` : `≥ ${atLeast}`
}

function aim({ aim: figure, atLeast }: Promised): string {
  if (figure === undefined) return ''
  return atLeast === undefined ? `≤ ${figure}` : `≥ ${figure}`
}

function shown(figure: number): string {
  if (Number.isInteger(figure)) return figure.toLocaleString('en-US')
  return figure.toLocaleString('en-US', { maximumFractionDigits: Math.abs(figure) >= 100 ? 0 : 3 })
}

/** Columns padded to their widest cell; all but the first flush right. */
function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = []
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, cell.length)
    })
  }
  return rows.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ')
      .trimEnd(),
  )
}
