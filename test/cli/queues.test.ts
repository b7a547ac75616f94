import { expect, it } from 'vitest'
import { type ServerProcess, serveForAll } from './server-process.ts'

let server: ServerProcess

serveForAll(['--queue', 'web=100/s', '--queue', 'mail=5/s'], (started) => {
  server = started
})

it('lists the queues of a server, and pauses and resumes one of them, whole or a level', async () => {
  const all = await server.data(['queues', 'ls'])
  const [paused] = await server.data(['queues', 'pause', '-q', 'web'])
  const [level] = await server.data(['queues', 'pause', '-q', 'web', '--level', 'low'])
  const shown = await server.data(['queues', 'ls'])
  const [resumed] = await server.data(['queues', 'resume', '-q', 'web'])
  const [whole] = await server.data(['queues', 'resume', '-q', 'web', '--level', 'low'])

  expect(all).toMatchObject([
    { name: 'web', paused: false },
    { name: 'mail', paused: false },
  ])
  expect(paused).toMatchObject({ name: 'web', paused: true, levelsPaused: { low: false } })
  expect(level).toMatchObject({ paused: true, levelsPaused: { low: true } })
  expect(shown).toMatchObject([
    { name: 'web', paused: true },
    { name: 'mail', paused: false },
  ])
  expect(resumed).toMatchObject({ paused: false, levelsPaused: { low: true } })
  expect(whole).toMatchObject({ paused: false, levelsPaused: { low: false } })
})

it('resumes what is paused by what "sluice doctor" says', async () => {
  await server.data(['queues', 'pause', '-q', 'mail'])
  await server.data(['queues', 'pause', '-q', 'mail', '--level', 'low'])

  const whole = await resumeAsTold()
  const level = await resumeAsTold()

  expect(whole).toMatchObject({ name: 'mail', paused: false, levelsPaused: { low: true } })
  expect(level).toMatchObject({ name: 'mail', paused: false, levelsPaused: { low: false } })
})

async function resumeAsTold(): Promise<object | undefined> {
  const [report] = await server.data<{ checks: { check: string; fix: string }[] }>(['doctor', '-q', 'mail'])
  const { fix = '' } = report?.checks.find(({ check }) => check === 'queue mail') ?? {}
  const [shown] = await server.data<object>(fix.replace(/^.*: sluice /, '').split(' '))
  return shown
}

it('is a table for people', async () => {
  const { stdout } = await server.sluice(['queues', 'pause', '-q', 'mail', '--level', 'high'])

  expect(stdout).toMatch(/^queue +state +levels paused .*\nmail +running +high +0 +0 +0\n$/)
})

it('ends with 3 for a queue that is not there, and with 2 for a level that is none', async () => {
  expect(await server.sluice(['queues', 'pause', '-q', 'nothing'])).toMatchObject({ code: 3, stdout: '' })
  expect(await server.sluice(['queues', 'pause', '-q', 'web', '--level', 'urgent'])).toMatchObject({ code: 2 })
})
