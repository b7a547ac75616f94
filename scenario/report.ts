import type { Listed } from './catalogue.ts'
import type { Result } from './run-scenario.ts'

/** The last line with `--json`. */
export function jsonLine(results: readonly Result[]): string {
  const passed = results.filter(({ pass }) => pass).length
  return JSON.stringify({ passed, failed: results.length - passed, scenarios: results })
}

export function table(results: readonly Result[]): string[] {
  const passed = results.filter(({ pass }) => pass).length
  return [...results.flatMap(linesOf), '', `${passed} passed, ${results.length - passed} failed`]
}

function linesOf({ name, pass, seconds, figures, broken = [], error }: Result): string[] {
  const width = Math.max(0, ...Object.keys(figures).map((figure) => figure.length))
  return [
    `${pass ? 'ok    ' : 'FAILED'}  ${name}  (${seconds} s)`,
    ...(error === undefined ? [] : [`          ${error}`]),
    ...broken.map((sentence) => `          ${sentence}`),
    ...Object.entries(figures).map(([figure, value]) => `          ${figure.padEnd(width)}  ${shown(value)}`),
  ]
}

function shown(figure: number): string {
  return figure.toLocaleString('en-US', { maximumFractionDigits: Math.abs(figure) >= 100 ? 0 : 3 })
}

export function list(all: readonly Listed[]): string[] {
  const width = Math.max(0, ...all.map(({ group, scenario }) => `${group} ${scenario.name}`.length))
  return all.map(({ group, scenario }) => `${`${group} ${scenario.name}`.padEnd(width)}  ${scenario.description}`)
}
