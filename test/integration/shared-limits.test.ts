import { expect, it } from 'vitest'
import type { Sluice } from '../../src/index.ts'
import { startUpstream } from '../../src/testing/upstream.ts'
import { payloads, useEngine } from './engine.ts'

const engine = useEngine()

/** A process with a queue under the shared limit, whose jobs call the upstream. */
function worker(name: string, rate: string, call: () => Promise<unknown>): Sluice {
  const sluice = engine.sluice()
  const github = sluice.limit('github', rate)
  const queue = sluice.queue(name, { limits: { upstream: github } })
  queue.process('T', call, { concurrency: 20 })
  return sluice
}

it('lets two queues and code without one send no more than a shared bucket allows, and nearly as many', async () => {
  const upstream = await startUpstream({ limit: 200 })
  const call = () => fetch(upstream.url)
  try {
    const [a, b] = [worker('a', '200/s', call), worker('b', '200/s', call)]
    const github = engine.sluice().limit('github', '200/s')
    await Promise.all([
      a.queue('a').submit({ type: 'T', jobs: payloads(400) }),
      b.queue('b').submit({ type: 'T', jobs: payloads(400) }),
    ])

    let sent = 0
    const calls: Promise<unknown>[] = []
    while (sent < 50) {
      const { granted, waitMs } = await github.acquire({ level: 'high' })
      if (granted) calls.push(call())
      if (granted) sent += 1
      else await new Promise((resolve) => setTimeout(resolve, waitMs))
    }
    await Promise.all(calls)
    await expect.poll(async () => (await upstream.report()).calls, { timeout: 20_000 }).toBe(850)

    const report = await upstream.report()
    expect(report.violations).toBe(0)
    // Queues of a group are found under its name alone.
    expect(await a.queue('a').counts()).toMatchObject({ succeeded: 400 })
  } finally {
    await upstream.stop()
  }
})

it('changes a shared limit for every queue at once, and goes back to what the code declares', async () => {
  const sluice = engine.sluice()
  const github = sluice.limit('github', { kind: 'window', limit: 1, windowMs: 3_600_000 })
  const [a, b] = [
    sluice.queue('a', { limits: { upstream: github } }),
    sluice.queue('b', { limits: { upstream: github } }),
  ]
  const ended: string[] = []
  a.process('T', () => void ended.push('a'))
  b.process('T', () => void ended.push('b'))
  await a.submit({ type: 'T', jobs: payloads(1) })
  await expect.poll(() => ended).toEqual(['a'])
  await b.submit({ type: 'T', jobs: payloads(2) })

  await github.change({ kind: 'window', limit: 3, windowMs: 3_600_000 })

  await expect.poll(() => ended).toEqual(['a', 'b', 'b'])
  expect(await github.status()).toMatchObject({ limit: 3, used: 3, remaining: 0 })
  await github.reset()
  expect(await b.limits.status('upstream')).toMatchObject({ limit: 1, remaining: 0 })
})

it('hands a slot that one queue frees to another that waits for it', async () => {
  const sluice = engine.sluice()
  const slot = sluice.limit('slot', { kind: 'concurrency', max: 1 })
  const order: string[] = []
  let inFlight = 0
  for (const name of ['a', 'b']) {
    const queue = sluice.queue(name, { limits: { slot } })
    queue.process('T', async () => {
      order.push(name)
      inFlight += 1
      expect(inFlight).toBe(1)
      await new Promise((resolve) => setTimeout(resolve, 5))
      inFlight -= 1
    })
    await queue.submit({ type: 'T', jobs: payloads(20) })
  }

  await expect.poll(() => order.length, { timeout: 10_000 }).toBe(40)
  expect(order.slice(0, 30)).toContain('b')
})

it('refuses limits of two groups on one queue, and says what to do', () => {
  const sluice = engine.sluice()
  const [github, mail] = [sluice.limit('github', '5/s'), sluice.limit('mail', '5/s')]

  expect(() => sluice.queue('q', { limits: { github, mail } })).toThrow(/one group.*group: 'github'/s)
  expect(() => sluice.queue('q', { limits: { tenant: { github } as never } })).toThrow(/each tenant has its own/)
})

it('says what acquire cannot do', async () => {
  const sluice = engine.sluice()
  const github = sluice.limit('github', '5/s')
  sluice.limit('slots', { kind: 'concurrency', max: 5 })
  sluice.limit('mail', '5/s', { group: 'github' })

  await expect(github.acquire({ permits: 6 })).rejects.toThrow(/at most 5/)
  await expect(sluice.limits.acquire(['github', 'slots'])).rejects.toThrow(/different groups/)
  await expect(sluice.limits.acquire('slots')).rejects.toThrow(/run it as a job/)
  await expect(sluice.limits.acquire('other')).rejects.toThrow(/sluice.limit/)
  expect(await sluice.limits.acquire(['github', 'mail'])).toMatchObject({ granted: true, waitMs: 0, remaining: 0 })
})

it('denies without Redis, or allows where it is told to, counted and logged; and counts again when it is back', async () => {
  const sluice = engine.sluice()
  const github = sluice.limit('github', '500/s')
  await github.acquire()
  process.kill(engine.server.pid, 'SIGSTOP')
  try {
    const [denied, allowed] = await Promise.all([github.acquire(), github.acquire({ onUnavailable: 'allow' })])

    expect(denied).toMatchObject({ granted: false, waitMs: 2_000, remaining: null })
    expect(allowed).toMatchObject({ granted: true, waitMs: 0, remaining: null })
    expect(sluice.limits.unavailable).toEqual({ denied: 1, allowed: 1 })
    expect(engine.log.map(({ event }) => event)).toContain('limits.allowed-uncounted')
  } finally {
    process.kill(engine.server.pid, 'SIGCONT')
  }
  await expect.poll(async () => (await github.acquire()).granted, { timeout: 15_000 }).toBe(true)
})

it('charges limits of a queue for a call that is no job, and lets them learn from a shared quota’s answer', async () => {
  const sluice = engine.sluice()
  const queue = sluice.queue('q', { limits: { queue: { kind: 'window', limit: 2, windowMs: 3_600_000 } } })
  const tokens = sluice.limit('tokens', { kind: 'quota', threshold: 0, pool: ['x'] })

  const permits = [await queue.limits.acquire('queue', { permits: 2 }), await queue.limits.acquire(['queue'])]
  expect(permits.map(({ granted }) => granted)).toEqual([true, false])

  const first = await tokens.acquire()
  expect([first.granted, first.remaining, first.grant]).toEqual([true, null, { tokens: 'x' }])
  const headers = { 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': '30', 'x-ratelimit-reset': '60' }
  await tokens.learn({ status: 200, headers }, first)
  expect(await tokens.acquire()).toMatchObject({ granted: true, remaining: 29 })
})
