import { expect, it } from 'vitest'
import { CliProcess, sluice } from './cli-process.ts'

it('sluice demo ends within a minute with a report that keeps every promise, as one JSON line last', async () => {
  const startedAt = performance.now()
  const end = await sluice(['demo', '--json'])

  const figures = JSON.parse(end.stdout.trim().split('\n').at(-1) ?? '') as Record<string, number>
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
  expect(performance.now() - startedAt).toBeLessThan(60_000)
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
