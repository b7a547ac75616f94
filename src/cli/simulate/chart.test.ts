import { describe, expect, it } from 'vitest'
import { checkPlan } from '../../simulate/plan.ts'
import { reportOf } from '../../simulate/report.ts'
import { Simulation } from '../../simulate/simulation.ts'
import { chartOf } from './chart.ts'

const report = reportOf(
  await new Simulation(
    checkPlan({
      duration: '10min',
      queue: { limits: { queue: '20/s' } },
      tenants: [
        { name: 'a <&> "b"', arrivals: { jobs: 6_000, at: '1min' } },
        { name: 'small', count: 3, arrivals: { jobs: 300, at: '2min' } },
      ],
    }),
  ).run(),
)

interface Element {
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"' }

function unescaped(text: string): string {
  return text.replace(/&(\w+);/g, (_, name: string) => {
    const character = entities[name]
    if (character === undefined) throw new Error(`&${name}; is no entity of XML`)
    return character
  })
}

/** Every element, in order. Throws where the text is not well-formed. */
function parseXml(text: string): Element[] {
  const elements: Element[] = []
  const open: string[] = []
  for (const [, tag, between = ''] of text.matchAll(/<([^>]*)>([^<]*)/g)) {
    if (/&(?!\w+;)/.test(between)) throw new Error(`a bare & in ${between}`)
    const [, slash, name = '', rest = ''] = /^(\/?)([a-z]+)([\s\S]*)$/.exec(tag as string) ?? []
    if (slash === '/') {
      if (open.pop() !== name) throw new Error(`</${name}> closes nothing`)
      continue
    }
    const attributes = Array.from(rest.matchAll(/\s([a-zA-Z0-9:-]+)="([^"<]*)"/g))
    if (rest.replace(/\/$/, '').length !== attributes.reduce((sum, [whole]) => sum + whole.length, 0)) {
      throw new Error(`<${tag}> has something that is no attribute`)
    }
    elements.push({
      name,
      attributes: Object.fromEntries(attributes.map(([, key, value = '']) => [key, unescaped(value)])),
    })
    if (!rest.endsWith('/')) open.push(name)
  }
  if (open.length > 0) throw new Error(`${open.join(', ')} not closed`)
  return elements
}

const elements = parseXml(chartOf(report))

function pointsOf(name: string): { x: number; y: number }[] {
  const curve = elements.find(({ attributes }) => attributes['data-name'] === name)
  const points = curve?.attributes.points?.split(' ') ?? []
  return points.map((point) => {
    const [x = Number.NaN, y = Number.NaN] = point.split(',').map(Number)
    return { x, y }
  })
}

/** Where the horizontal lines of a panel are, from the bottom to the top. */
function gridOf(panel: 0 | 1): number[] {
  const lines = elements
    .filter(({ attributes }) => attributes.class === 'grid')
    .map(({ attributes }) => Number(attributes.y1))
  return lines.slice(panel * 5, panel * 5 + 5)
}

describe('the chart of a simulation', () => {
  it('is well-formed and stands alone', () => {
    expect(elements[0]).toMatchObject({ name: 'svg', attributes: { xmlns: 'http://www.w3.org/2000/svg' } })
    expect(chartOf(report)).not.toMatch(/href|url\(|<script/)
  })

  it('says what becomes of the largest flood, and of those beside it', () => {
    const said = Array.from(chartOf(report).matchAll(/class="said"[^>]*>([^<]*)</g), ([, words]) => words)

    expect(said).toEqual([
      expect.stringMatching(/^The flood of a &lt;&amp;&gt; &quot;b&quot; \(6,000 jobs\) ends after /),
      expect.stringMatching(/^The longest wait at p99 is \d/),
    ])
  })

  it('has a curve for each group, for each limit and for the hands, with a point for each instant', () => {
    const names = elements.flatMap(({ attributes }) => attributes['data-name'] ?? [])

    expect(names).toEqual(['a <&> "b"', 'small × 3', 'queue', '10 hands'])
    for (const name of names) expect(pointsOf(name)).toHaveLength(report.timesMs.length)
  })

  it('draws backlogs where their numbers belong: 0 on the lowest line, 8,000 on the highest', () => {
    const [bottom = 0, , , , top = 0] = gridOf(0)
    const backlog = report.groups[0]?.backlog ?? []

    const points = pointsOf('a <&> "b"')

    expect(Math.max(...backlog)).toBeGreaterThan(5_000)
    for (const [at, jobs] of backlog.entries()) {
      expect(points[at]?.y).toBeCloseTo(bottom - ((bottom - top) * jobs) / 8_000, 0)
    }
    expect(points.at(-1)?.x).toBeGreaterThan(points[0]?.x ?? 0)
  })

  it('cuts names that are too long for the picture', async () => {
    const name = 'x'.repeat(150)
    const plan = checkPlan({ duration: '1min', tenants: [{ name, arrivals: { rate: '1/s' } }] })

    const texts = Array.from(chartOf(reportOf(await new Simulation(plan).run())).matchAll(/<text[^>]*>([^<]*)</g))

    const longest = Math.max(...texts.map(([, words = '']) => words.length))
    expect(texts.map(([, words]) => words)).toContain(`${'x'.repeat(21)}…`)
    expect(longest).toBe(120)
  })

  it('draws the use of a limit between none and all of it', () => {
    const [bottom = 0, , , , top = 0] = gridOf(1)
    const used = report.limits[0]?.used.overTime ?? []

    const points = pointsOf('queue')

    for (const [at, share] of used.entries()) {
      expect(points[at]?.y).toBeCloseTo(bottom - (bottom - top) * Math.min(1, share), 0)
    }
  })
})
