import { expect, it } from 'vitest'
import { type ServerProcess, serveForAll } from './server-process.ts'

let server: ServerProcess

serveForAll(['--queue', 'web=100/s'], (started) => {
  server = started
})

const payload = '{"url":"http://unknown.example"}'
const call = ['--type', 'http.request', '--payload', payload, '-q', 'web']
const nightly = ['--cron', '0 3 * * *', '--time-zone', 'Europe/Berlin', ...call]

it('makes, lists, pauses, resumes, runs and removes a schedule', async () => {
  const [made] = await server.data(['schedules', 'set', 'nightly', ...nightly, '-t', 'acme'])
  const [soonest] = await server.data(['schedules', 'set', 'soon', '--every', '1m', '--cost', '5', ...call])
  const [shown] = await server.data(['schedules', 'get', 'nightly', '-q', 'web'])
  const all = await server.data(['schedules', 'ls', '-q', 'web'])
  const soon = await server.data(['schedules', 'ls', '-q', 'web', '--due-within', '60s'])
  const [paused] = await server.data(['schedules', 'pause', 'soon', '-q', 'web'])
  const [resumed] = await server.data(['schedules', 'resume', 'soon', '-q', 'web'])
  const [run] = await server.data(['schedules', 'run', 'nightly', '-q', 'web'])
  const [removed] = await server.data(['schedules', 'rm', 'soon', '-q', 'web'])
  const gone = await server.sluice(['schedules', 'rm', 'soon', '-q', 'web'])

  expect(made).toMatchObject({ cron: '0 3 * * *', job: { tenant: 'acme', payload: JSON.parse(payload) } })
  expect(shown).toEqual(made)
  expect(soonest).toMatchObject({ job: { cost: 5 } })
  expect(all).toMatchObject([{ name: 'soon' }, { name: 'nightly' }])
  expect(soon).toMatchObject([{ name: 'soon', everyMs: 60_000 }])
  expect([paused, resumed]).toMatchObject([{ pausedSince: expect.any(Number) }, { nextAt: expect.any(Number) }])
  expect(run).toMatchObject({ id: expect.stringMatching(/^nightly@/), isNew: true })
  expect(removed).toEqual({ name: 'soon', removed: true })
  expect(gone).toMatchObject({ code: 3, stdout: '' })
})

it('is a table for people', async () => {
  await server.data(['schedules', 'set', 'nightly', ...nightly])

  const { stdout, stderr } = await server.sluice(['schedules', 'ls', '-q', 'web'])
  const one = await server.sluice(['schedules', 'get', 'nightly', '-q', 'web'])

  expect(stdout).toMatch(/^name +when +next .*\nnightly +0 3 \* \* \* Europe\/Berlin +\d{4}-/)
  expect(stderr).toContain('schedules: 1, of them due within 60s: 0')
  expect(one.stdout).toMatch(
    /^name .*\nnightly .*\n\njob of every tick: \{.*"payload":\{"url":.*\nfor ticks that were missed: one\n$/,
  )
})

it('says in one line what cannot be', async () => {
  const cron = await server.sluice(['schedules', 'set', 'x', '--cron', '0 99 * * *', '--type', 'A', '-q', 'web'])
  const broken = await server.sluice(['schedules', 'set', 'x', ...nightly, '--payload', '{'])
  const dear = await server.sluice(['schedules', 'set', 'x', ...nightly, '--cost', '101'])

  expect(dear).toMatchObject({ code: 2, stdout: '' })
  expect(dear.stderr).toContain('job.cost is 101, more than the limit "queue" could ever grant (100)')
  expect(cron).toMatchObject({ code: 2, stdout: '' })
  expect(cron.stderr).toMatch(/^sluice: .*cron cannot be understood: Invalid value for hour: 99.*\n$/)
  expect(broken).toMatchObject({ code: 2, stdout: '' })
  expect(broken.stderr).toMatch(/^sluice: --payload must be JSON: .*\n$/)
})
