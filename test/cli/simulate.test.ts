import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { SimulationReport } from '../../src/simulate/report.ts'
import { read } from '../docs/markdown.ts'
import { type CliOptions, CliProcess } from './cli-process.ts'
import { folderWith, removeFolder } from './server-process.ts'

const example = 'examples/simulate/two-customers.json'

let folder: string

beforeAll(() => {
  folder = folderWith({ file: '' })
})
afterAll(() => removeFolder(folder))

function simulate(args: readonly string[], options?: CliOptions) {
  return new CliProcess(['simulate', ...args], options).ended()
}

function saved(name: string, plan: unknown): string {
  const path = join(folder, name)
  writeFileSync(path, typeof plan === 'string' ? plan : JSON.stringify(plan))
  return path
}

describe('sluice simulate', () => {
  it('tells people in sentences and tables, and draws a chart', async () => {
    const chart = join(folder, 'chart.svg')

    const { code, stdout, stderr } = await simulate([example, '--chart', chart])

    expect(code, stderr).toBe(0)
    const [first, , others] = stdout.split('\n')
    expect(first).toMatch(/^The flood of acme \(30,000 jobs\) ends after \d+ min \d+ s\.$/)
    expect(others).toMatch(/^Nobody else waits more than \d+ ms at p99 \(premium\)\.$/)
    expect(stdout).toMatch(/^tenant +jobs +done +left +mean +p50 +p95 +p99 +max +took +received +entitled$/m)
    expect(stdout).toMatch(/^acme +30,000 +30,000 +0 /m)
    expect(stdout).toMatch(/^queue +bucket +95.24\/s +\d+ % +100 %$/m)
    expect(stderr).toContain(`The chart is in ${chart}.`)
    expect(readFileSync(chart, 'utf8')).toMatch(/^<svg [\s\S]*<\/svg>\n$/)
  })

  it.each([
    [
      'a chart whose name does not say what it is',
      'chart.gif',
      /^sluice: --chart .*chart\.gif must end in \.svg or \.png/,
    ],
    [
      'a PNG where nothing can draw it',
      'none.png',
      /^sluice: rsvg-convert .*is not here: install it .*, or name an \.svg$/m,
    ],
    ['a chart in a folder that is not there', 'nowhere/chart.svg', /^sluice: .*: its folder does not exist$/m],
    ['a chart in a folder that is a file', 'file/chart.svg', /^sluice: .*: what should be its folder is none$/m],
  ])('refuses %s, before it simulates', async (_, name, words) => {
    const chart = join(folder, name)

    const { code, stdout, stderr } = await simulate([example, '--chart', chart], { env: { PATH: '' } })

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(words)
    expect(existsSync(chart)).toBe(false)
  })

  it('loses nothing but its chart when that cannot be written after all', async () => {
    const charts = join(folder, 'charts')
    mkdirSync(charts)
    const plan = join(folder, 'plan.fifo')
    execFileSync('mkfifo', [plan])

    const simulated = simulate([plan, '--chart', join(charts, 'chart.svg'), '--json'])
    // Opens when the plan is asked for: the chart has been found writable by then.
    const pipe = await open(plan, 'w')
    rmSync(charts, { recursive: true })
    await pipe.writeFile(read(example))
    await pipe.close()

    const { code, stdout, stderr } = await simulated
    expect(code).toBe(2)
    expect(JSON.parse(stdout)).toMatchObject({ schema: 'sluice.simulation/v1', jobs: { left: 0 } })
    expect(stderr).toMatch(/the chart cannot be written: .*chart\.svg: its folder does not exist/)
  })

  it('refuses to draw its chart over its plan', async () => {
    const plan = saved('kept.json', read(example))

    expect(await simulate([plan, '--chart', plan])).toMatchObject({ code: 2, stdout: '' })
    expect(readFileSync(plan, 'utf8')).toBe(read(example))
  })

  it('tells programs everything as one document, the same each time', async () => {
    const [fromFile, fromInput] = await Promise.all([
      simulate([example, '--json']),
      simulate(['-', '--json'], { input: read(example) }),
    ])

    const report = JSON.parse(fromFile.stdout) as SimulationReport & { schema: string; summary: string[] }
    expect(report.schema).toBe('sluice.simulation/v1')
    expect(report.summary[0]).toMatch(/^The flood of acme/)
    expect(report.jobs).toMatchObject({ failed: 0, left: 0 })
    expect(report.tenants.map(({ tenant }) => tenant)).toEqual(['acme', 'globex', 'premium'])
    expect(report.floods).toMatchObject([
      { tenant: 'acme', jobs: 30_000 },
      { tenant: 'globex', jobs: 500 },
    ])
    expect(report.limits.map(({ name, scope }) => `${scope} ${name}`)).toEqual([
      'queue queue',
      'tenant tenant',
      'tenant tenant',
      'tenant tenant',
    ])
    expect(fromInput.stdout).toBe(fromFile.stdout)
  })

  it('draws other chance for another seed', async () => {
    const plan = saved('chance.json', { duration: '1min', tenants: [{ name: 'a', arrivals: { rate: '5/s' } }] })

    const [one, two] = await Promise.all(['1', '2'].map((seed) => simulate([plan, '--json', '--seed', seed])))

    expect(one?.stdout).not.toBe(two?.stdout)
  })

  it('shows as many tenants as asked for, and groups as one row', async () => {
    const tenants = Array.from({ length: 4 }, (_, at) => ({ name: `t${at}`, count: 10, arrivals: { jobs: 5 } }))
    const plan = saved('groups.json', { duration: '1min', tenants })

    const { stdout } = await simulate([plan, '--top', '3'])

    expect(stdout.match(/^t\d × 10 +50 +50 /gm)).toHaveLength(3)
    expect(stdout).toContain('… and 1 more: see --top and --json')
  })

  it.each([
    ['a file that is not there', () => join(folder, 'none.json'), /none\.json cannot be read: ENOENT/],
    ['what is not JSON', () => saved('text.json', '{ duration'), /text\.json is not JSON: /],
    [
      'a plan with mistakes, each with its place',
      () => saved('wrong.json', { duration: '1h', tenants: [{ name: 'a', arrivals: { rate: 'x' } }], limit: 5 }),
      /tenants\[0\]\.arrivals\.rate must be a rate above 0 such as .*limit is not an option/,
    ],
    [
      'a plan that would take hours, unless it is meant',
      () => saved('large.json', { duration: '1d', tenants: [{ name: 'a', arrivals: { rate: '10000/s' } }] }),
      /864,000,000 jobs take about 2 h 5\d min to simulate; shorten its duration.* or give --yes/,
    ],
  ])('refuses %s', async (_, path, words) => {
    const { code, stdout, stderr } = await simulate([path()])

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(words)
    expect(stderr.trim().split('\n')).toHaveLength(1)
  })

  it('ends at Ctrl-C', async () => {
    const plan = saved('long.json', { duration: '366d', tenants: [{ name: 'a', arrivals: { rate: '10/s' } }] })
    const cli = new CliProcess(['simulate', plan, '--yes'])
    await cli.said(/of virtual time/)

    cli.signal('SIGINT')

    expect(await cli.ended()).toMatchObject({ code: 130, stdout: '' })
  })
})
