import { describe, expect, it } from 'vitest'
import { type ServerProcess, serveForAll } from './server-process.ts'

let server: ServerProcess

serveForAll(['--queue', 'web=100/s'], (started) => {
  server = started
})

const inWeb = ['-q', 'web']

describe('sluice jobs', () => {
  const given = ['order-17', '-t', 'acme', ...inWeb]

  it('shows a job, says why it waits, makes it due and cancels it', async () => {
    await server.submitJob('web', { tenant: 'acme', id: 'order-17', delayMs: 3_600_000 })

    const [[shown], read, [why], words] = await Promise.all([
      server.data(['jobs', 'get', ...given]),
      server.sluice(['jobs', 'get', ...given]),
      server.data(['jobs', 'explain', ...given]),
      server.sluice(['jobs', 'explain', ...given]),
    ])
    const [canceled] = await server.data(['jobs', 'cancel', ...given])
    const [gone, late] = await Promise.all([
      server.data(['jobs', 'get', ...given]),
      server.sluice(['jobs', 'run', ...given]),
    ])

    expect(shown).toMatchObject({ state: 'delayed', tenant: 'acme', type: 'http.request' })
    expect(read.stdout).toMatch(
      /^job .*\norder-17 +acme +http\.request +delayed +scheduled .*\d{4}-.*Z\n\npayload: \{"url":/,
    )
    expect(why).toMatchObject({ mayRunAt: expect.any(Number) })
    expect(words.stdout).toMatch(/^Delayed until .*\n {2}yes {2}queue .*(\n.*)*\n {2}no {3}job /)
    expect(canceled).toEqual({ id: 'order-17', state: 'canceled' })
    expect(gone).toMatchObject([{ state: 'canceled' }])
    expect(late.code).toBe(4)
  })

  it('makes delayed jobs due: one, or all that fit', async () => {
    const ids = await Promise.all(
      ['a', 'b', 'c'].map((id) => server.submitJob('web', { tenant: 'late', id, delayMs: 3_600_000 })),
    )
    const one = await server.sluice(['jobs', 'run', ids[0] ?? '', '-t', 'late', ...inWeb])
    const [rest] = await server.data(['jobs', 'run-delayed', '-t', 'late', '--reason', 'scheduled', ...inWeb])
    const unsaid = await server.sluice(['jobs', 'run-delayed', ...inWeb])

    expect(one).toMatchObject({ code: 0, stdout: 'a: due\n' })
    expect(rest).toMatchObject({ due: 2 })
    expect(unsaid).toMatchObject({
      code: 2,
      stderr: 'sluice: say which: --tenant, --type, --action, --reason or --all\n',
    })
  })

  it('ends with 3 for a job that is not there', async () => {
    const ends = await Promise.all(['get', 'explain'].map((verb) => server.sluice(['jobs', verb, 'none', ...inWeb])))

    expect(ends.map(({ code }) => code)).toEqual([3, 3])
  })
})

describe('sluice tenants', () => {
  it('says why a tenant waits, every gate in order', async () => {
    await server.data(['tenants', 'pause', 'waits', ...inWeb])
    await server.submitJob('web', { tenant: 'waits' })

    const [[why], words] = await Promise.all([
      server.data<{ binds: unknown }>(['tenants', 'explain', 'waits', ...inWeb]),
      server.sluice(['tenants', 'explain', 'waits', ...inWeb]),
    ])

    expect(why).toMatchObject({ binds: expect.anything() })
    expect(words.stdout).toMatch(/paused/)
  })

  it('puts tenants back in line: one, or all', async () => {
    const [one, all] = await Promise.all([
      server.data(['tenants', 'unpark', 'waits', ...inWeb]),
      server.sluice(['tenants', 'unpark', ...inWeb]),
    ])

    expect(one).toMatchObject([{ tenant: 'waits', state: 'paused' }])
    expect(all).toMatchObject({ code: 0, stdout: '0 tenants go back in line\n' })
  })

  it.each(['.', '..'])(
    'asks for nothing where %o is given as a name: it would be all tenants, or the queue',
    async (name) => {
      const changes = async () =>
        ((await (await fetch(`${server.url}/v1/audit`)).json()) as { entries: object[] }).entries
      const before = await changes()

      const ends = await Promise.all([
        server.sluice(['tenants', 'unpark', name, ...inWeb]),
        server.sluice(['tenants', 'pause', 'acme', '-q', name]),
        server.sluice(['actions', 'cancel', name]),
      ])

      const stderr = 'sluice: a name must not be "." or "..", which no URL can name\n'
      expect(ends).toEqual(ends.map(() => expect.objectContaining({ code: 2, stdout: '', stderr })))
      expect(await changes()).toEqual(before)
    },
  )
})

describe('sluice dead', () => {
  it('counts, retries and discards all letters that fit, at a rate', async () => {
    const find = () => server.data<{ key: string }>(['dead', 'ls', ...inWeb, '-t', 'swept'])
    await Promise.all(['1', '2', '3'].map((id) => server.submitJob('web', { tenant: 'swept', id })))
    await expect.poll(find, { timeout: 30_000 }).toHaveLength(3)

    const [counted] = await server.data(['dead', 'retry', ...inWeb, '-t', 'swept', '--dry-run'])
    const [elsewhere] = await server.data(['dead', 'discard', ...inWeb, '-t', 'swept', '--error', 'no such words'])
    const [retried] = await server.data([
      'dead',
      'retry',
      ...inWeb,
      '-t',
      'swept',
      '--reason',
      'discarded',
      '--rate',
      '100/s',
    ])
    await expect.poll(find, { timeout: 30_000 }).toHaveLength(3)
    const discarded = await server.sluice(['dead', 'discard', ...inWeb, '-t', 'swept', '--since', '2020-01-01'])
    const unsaid = await server.sluice(['dead', 'discard', ...inWeb])

    expect(counted).toEqual({ taken: 3, dryRun: true })
    expect(elsewhere).toEqual({ taken: 0, dryRun: false })
    expect(retried).toEqual({ taken: 3, dryRun: false })
    expect(discarded).toMatchObject({ code: 0, stdout: '3 dead letters are gone\n' })
    expect(await find()).toEqual([])
    expect(unsaid.code).toBe(2)
  })

  it('runs a letter again with another payload', async () => {
    const find = () => server.data<{ key: string }>(['dead', 'ls', ...inWeb, '-t', 'edited'])
    await server.submitJob('web', { tenant: 'edited' })
    await expect.poll(find, { timeout: 30_000 }).toHaveLength(1)
    const [letter] = await find()
    const retry = ['dead', 'retry', letter?.key ?? '', ...inWeb]

    const nonsense = await server.sluice([...retry, '--payload', '{'])
    await server.data([...retry, '--payload', '{"url":"http://other.example"}'])
    await expect
      .poll(async () => (await server.data(['dead', 'show', letter?.key ?? '', ...inWeb]).catch(() => [{}]))[0], {
        timeout: 30_000,
      })
      .toMatchObject({ payload: { url: 'http://other.example' } })

    expect(nonsense).toMatchObject({ code: 2, stdout: '' })
  })
})
