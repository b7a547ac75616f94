import { beforeAll, describe, expect, it } from 'vitest'
import { type DemoFigures, reportText } from '../../src/cli/demo/demo-report.ts'
import { read } from '../docs/markdown.ts'
import { CliProcess, sluice } from './cli-process.ts'

/** The lines of the picture, without colours. */
function linesOf(svg: string): string[] {
  return Array.from(svg.matchAll(/<text [^>]*>(.*)<\/text>/g), ([, line = '']) => line.replaceAll(/<[^>]+>/g, ''))
}

function withoutFigures(line: string): string {
  return line.replaceAll(/\d[\d.,]*/g, '#')
}

describe('sluice demo --json', () => {
  let end: Awaited<ReturnType<typeof sluice>>
  let figures: DemoFigures
  let tookMs: number

  beforeAll(async () => {
    const startedAt = performance.now()
    end = await sluice(['demo', '--json'])
    tookMs = performance.now() - startedAt
    figures = JSON.parse(end.stdout.trim().split('\n').at(-1) ?? '') as DemoFigures
  }, 180_000)

  it('ends within a minute with a report that keeps every promise, as one JSON line last', () => {
    expect({ code: end.code, violations: figures.violations, lost: figures.lost, repeated: figures.repeated }).toEqual({
      code: 0,
      violations: 0,
      lost: 0,
      repeated: 0,
    })
    expect(figures.smallTenantOverIdeal).toBeGreaterThan(0.9)
    expect(figures.smallTenantOverIdeal).toBeLessThanOrEqual(1.3)
    expect(figures.throttleMovesPerJob).toBeLessThanOrEqual(0.02)
    expect(figures.overIdealPercent).toBeGreaterThan(0)
    expect(figures.overIdealPercent).toBeLessThanOrEqual(10)
    expect(tookMs).toBeLessThan(60_000)
  })

  it('says what the picture in the README shows, but for the figures', () => {
    const shown = linesOf(read('docs/pictures/demo.svg')).filter((line) => line !== '')
    const isBar = (line: string) => /^\S+ +[█░]+ /.test(line)
    const words = shown.filter((line) => !isBar(line)).map(withoutFigures)

    // Where there is no terminal, bars are lines of their own.
    const said = end.stderr.split('\n').filter((line) => line !== '' && !/^\S+: .* %/.test(line))
    const report = reportText(figures).split('\n')

    expect(words.toSorted()).toEqual(['$ npm run demo', ...[...said, ...report].map(withoutFigures)].toSorted())
    expect(shown.filter(isBar).map((line) => line.match(/^\S+|\d+ %/g))).toEqual([
      ['huge', expect.stringMatching(/^[1-9]\d %$/)],
      ['small-1', '100 %'],
      ['small-2', '100 %'],
    ])
    expect(shown.find((line) => line.includes('calls over the limit'))).toMatch(/limit +0 /)
    expect(read('README.md')).toContain('(docs/pictures/demo.svg)')
  })
})

it('sluice demo says who submits what, in plain lines where there is no terminal', async () => {
  const cli = new CliProcess(['demo'])

  await cli.said(/huge submits 7,000 calls/)
  await cli.said(/huge: \d[\d,]*\/7,000, \d+ %/)
  cli.signal('SIGINT')
  const { code, stderr } = await cli.ended()

  expect(code).toBe(130)
  expect(stderr).not.toContain('\x1b[')
})
