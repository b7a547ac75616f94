import type { SimulationReport } from '../../simulate/report.ts'
import { sayDuration } from '../duration.ts'
import { cutToWidth } from '../text-width.ts'
import { nameOf, summarize, tellOthers } from './summary.ts'
import { timeTicks } from './time-ticks.ts'

/** What is drawn over time. */
interface Curve {
  readonly name: string
  readonly values: readonly number[]
}

interface Panel {
  readonly title: string
  readonly curves: readonly Curve[]
  /** The top of the axis. */
  readonly most: number
  readonly label: (value: number) => string
  readonly top: number
}

const WIDTH = 960
const LEFT = 70
const RIGHT = 190
const PANEL_HEIGHT = 190
const FIRST_TOP = 116
const SECOND_TOP = FIRST_TOP + PANEL_HEIGHT + 66
const HEIGHT = SECOND_TOP + PANEL_HEIGHT + 44
const PLOT_WIDTH = WIDTH - LEFT - RIGHT
const LINES = 4
const MOST_CURVES = 7
/** What fits before the edge, in letters. */
const LEGEND_WIDTH = 22
const SAID_WIDTH = 120

// Told apart by those who do not see all colours (Okabe and Ito), and readable on light and on dark.
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#8c8c8c']

// Neither background nor ink of its own: grey that can be read on both.
const STYLE = `
  text { font: 12px system-ui, sans-serif; fill: #7a7f87; }
  .title { font-size: 15px; font-weight: 600; }
  .said { font-size: 13px; }
  .head { font-weight: 600; }
  .grid { stroke: #7a7f87; stroke-opacity: 0.25; }
  .curve { fill: none; stroke-width: 2; stroke-linejoin: round; }
`

/** Backlogs and the use of limits over time as one SVG: it stands alone, and needs nothing from anywhere. */
export function chartOf(report: SimulationReport): string {
  const panels = [backlogPanel(report), usePanel(report)]
  const sentences = summarize(report)
  const others = tellOthers(report)
  // What matters most; of several floods the largest.
  const said = sentences[0] === others ? [others] : [sentences[0] ?? '', others]
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img">`,
    `<title>Simulation of ${sayDuration(report.tookMs)}</title>`,
    `<desc>${escaped(sentences.join(' '))}</desc>`,
    `<style>${STYLE}</style>`,
    `<text class="title" x="${LEFT}" y="26">Simulation of ${sayDuration(report.tookMs)}</text>`,
    ...said.map(
      (sentence, at) =>
        `<text class="said" x="${LEFT}" y="${46 + at * 18}">${escaped(cutToWidth(sentence, SAID_WIDTH))}</text>`,
    ),
    ...panels.flatMap((panel) => drawPanel(panel, report)),
    '</svg>',
    '',
  ].join('\n')
}

function backlogPanel({ groups }: SimulationReport): Panel {
  const peak = ({ values }: Curve) => Math.max(0, ...values)
  const curves = groups
    .map(({ group, tenants, backlog }) => ({ name: tenants === 1 ? group : `${group} × ${tenants}`, values: backlog }))
    .toSorted((a, b) => peak(b) - peak(a))
    .slice(0, MOST_CURVES)
  const most = roundUp(Math.max(1, ...curves.map(peak)))
  const notation = most >= 1e6 ? 'compact' : 'standard'
  const label = (value: number) => value.toLocaleString('en', { maximumFractionDigits: 1, notation })
  return { title: 'Jobs waiting', curves, most, label, top: FIRST_TOP }
}

function usePanel({ limits, hands }: SimulationReport): Panel {
  const busiest = limits.toSorted((a, b) => b.used.average - a.used.average).slice(0, MOST_CURVES - 1)
  const curves = [
    ...busiest.map((limit) => ({ name: nameOf(limit), values: limit.used.overTime })),
    { name: `${hands.count} hands`, values: hands.used.overTime },
  ]
  const label = (value: number) => `${Math.round(value * 100)} %`
  return { title: 'Use of limits and hands', curves, most: 1, label, top: SECOND_TOP }
}

function drawPanel(panel: Panel, { timesMs, tookMs }: SimulationReport): string[] {
  return [
    `<text class="head" x="${LEFT}" y="${panel.top - 12}">${panel.title}</text>`,
    ...gridOf(panel),
    ...timeAxis(panel, tookMs),
    ...panel.curves.flatMap((curve, at) => drawCurve(curve, at, panel, { timesMs, tookMs })),
  ]
}

function gridOf({ top, most, label }: Panel): string[] {
  return Array.from({ length: LINES + 1 }, (_, line) => {
    const value = (most * line) / LINES
    const y = yOf(value, { top, most })
    return (
      `<line class="grid" x1="${LEFT}" x2="${LEFT + PLOT_WIDTH}" y1="${y}" y2="${y}"/>` +
      `<text x="${LEFT - 8}" y="${y + 4}" text-anchor="end">${label(value)}</text>`
    )
  })
}

function timeAxis({ top }: Panel, endMs: number): string[] {
  const y = top + PANEL_HEIGHT + 18
  return timeTicks(endMs).map(
    ({ ms, label }) => `<text x="${xOf(ms, endMs)}" y="${y}" text-anchor="middle">${label}</text>`,
  )
}

function drawCurve(
  { name, values }: Curve,
  at: number,
  panel: Panel,
  { timesMs, tookMs }: Pick<SimulationReport, 'timesMs' | 'tookMs'>,
): string[] {
  const colour = COLOURS[at % COLOURS.length]
  const points = values.map((value, index) => `${xOf(timesMs[index] ?? 0, tookMs)},${yOf(value, panel)}`).join(' ')
  const y = panel.top + 8 + at * 18
  const x = LEFT + PLOT_WIDTH + 14
  return [
    `<polyline class="curve" stroke="${colour}" data-name="${escaped(name)}" points="${points}"><title>${escaped(name)}</title></polyline>`,
    `<line x1="${x}" x2="${x + 16}" y1="${y}" y2="${y}" stroke="${colour}" stroke-width="3"/>`,
    `<text x="${x + 22}" y="${y + 4}">${escaped(cutToWidth(name, LEGEND_WIDTH))}</text>`,
  ]
}

function xOf(ms: number, endMs: number): number {
  return toTenths(LEFT + (PLOT_WIDTH * ms) / endMs)
}

/** What is above the axis stays at its top. */
function yOf(value: number, { top, most }: { top: number; most: number }): number {
  return toTenths(top + PANEL_HEIGHT * (1 - Math.min(1, value / most)))
}

function toTenths(value: number): number {
  return Math.round(value * 10) / 10
}

/** To the next 1, 2, 4 or 8 with zeros: a quarter of it can be read. */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 4, 8, 10].find((step) => step * power >= value) ?? 10) * power
}

/** As XML can hold it: control characters cannot be in it at all, and no name has any. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
