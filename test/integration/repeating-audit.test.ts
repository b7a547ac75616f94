import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { insideOf } from '../../src/engine/queue.ts'
import type { Queue, QueueOptions } from '../../src/index.ts'
import { keyPrefix } from '../../src/store/keys.ts'
import { readAllCounts } from '../../src/store/scripts/read-counts.ts'
import { all } from '../support/all.ts'
import { until } from '../support/until.ts'
import { breaks, fillForAudit } from './broken-queues.ts'
import { useEngine } from './engine.ts'

const engine = useEngine()

/** As fast as it can be. */
const quick: QueueOptions = { audit: { everyMs: 100, stepMs: 1, idleStepMs: 1 } }

async function repaired(queue: Queue): Promise<ReadonlyMap<string, number>> {
  return (await readAllCounts(insideOf(queue).requests)).repaired
}

it('finds every kind of difference and puts it right, without anybody asking', async () => {
  const client = engine.server.client()
  const [filling, looking] = [engine.sluice(), engine.sluice()]
  const audit = { everyMs: 4_000, stepMs: 1, idleStepMs: 1 }
  const queues = Object.entries(breaks).map(([kind, breakIt]) => ({
    ...{ kind, breakIt },
    filled: filling.queue(kind, { audit: { enabled: false } }),
    queue: looking.queue(kind, { audit }),
  }))
  await Promise.all(queues.map(({ filled }) => fillForAudit(filled).then(() => filled.pause())))
  // Who claims looks after the queue, for the first time when half of `everyMs` is over: until then all harm is done, as
  // what is found half done is another kind of difference.
  await Promise.all(queues.map(({ queue }) => queue.claim(1)))
  await Promise.all(queues.map(({ kind, breakIt }) => breakIt(client, (name) => keyPrefix(engine.prefix, kind) + name)))

  // Told by the log, which costs nothing to ask: forty audits have enough to do.
  const said = () => new Set(engine.log.map(({ message }) => /^Queue "([^"]+)": the audit has put/.exec(message)?.[1]))
  await until(() => said().size === queues.length)

  expect(said()).toEqual(new Set(queues.map(({ kind }) => kind)))
  for (const { kind, queue } of queues) await until(async () => (await repaired(queue)).has(kind))
})

it('tells what it has put right', async () => {
  const queue = engine.queue(quick)
  await queue.submit({ jobs: [1, 2].map((payload) => ({ type: 'T', tenant: 'a', payload })) })
  const [held] = await queue.claim(1)
  const ending = new AbortController()
  const events = all(queue.events({ from: '0', signal: ending.signal }))

  await engine.server.client().zrem(`${keyPrefix(engine.prefix, 'q')}ready:normal`, 'a')
  await until(async () => (await queue.counts()).differences > 0)
  await until(async () => (await queue.claim(1)).length === 1)
  ending.abort()

  const told = (await events).filter(({ type }) => type === 'audit.repaired')
  expect(told).toMatchObject([{ reason: 'ready.normal.missing', subject: 'a' }])
  const entry = engine.log.find(({ event }) => event === 'audit.repaired')
  expect(entry?.message).toMatch(
    /^Queue "q": the audit has put right 1 differences: ready\.normal\.missing of a \(none instead of \d+\)\.$/,
  )
  await held?.succeed()
})

it('is one, whatever the number of processes', async () => {
  const everyMs = 600
  const queues = [1, 2, 3].map(() => engine.queue({ audit: { everyMs, stepMs: 1, idleStepMs: 1 } }))
  await Promise.all(queues.map((queue) => queue.claim(1)))
  const [queue] = queues as [Queue, ...Queue[]]

  await until(async () => (await queue.counts()).audits >= 1)
  const startedAt = performance.now()
  await until(async () => (await queue.counts()).audits >= 4)

  // Rounds begin so far apart, and each takes a moment.
  expect(performance.now() - startedAt).toBeGreaterThan(2.5 * everyMs)
})

it('does nothing where it is switched off', async () => {
  const queue = engine.queue({ audit: { ...quick.audit, enabled: false } })
  await queue.submit({ type: 'T' })
  await queue.claim(1)

  // Nothing tells that nothing happens: three rounds would have begun by now.
  await pause(400)

  expect(await queue.counts()).toMatchObject({ audits: 0 })
})

it('finds nothing in a busy queue, however often it looks', async () => {
  const options: QueueOptions = { ...quick, leaseMs: 300, maxStalls: 20, limits: { tenant: '400/s' } }
  const queues = [engine.queue(options), engine.queue(options)] as const
  const [queue] = queues
  let runs = 0
  for (const each of queues) {
    each.process('T', async () => {
      runs += 1
      if (runs % 7 === 0) throw new Error('again')
      if (runs % 50 === 0) await pause(20)
    })
  }
  let isOver = false
  // As fast as its Redis answers, while jobs do not pile up: rounds must come to their end.
  const busy = async (work: (round: number) => Promise<unknown>) => {
    for (let round = 0; !isOver; round++) {
      await work(round)
      await until(async () => isOver || (await queue.counts()).waiting < 200)
    }
  }
  const tenant = (round: number) => `t${round % 13}`
  const working = [
    busy((round) =>
      queue.submit({
        jobs: Array.from({ length: 20 }, (_, at) => ({
          type: 'T',
          tenant: `t${(round + at) % 17}`,
          id: `${round}-${at}`,
          delayMs: at % 4 ? 0 : at * 10,
          maxRetries: 1,
          level: (['high', 'normal', 'low'] as const)[at % 3] as 'high',
          ...(at % 5 ? {} : { lane: `lane-${at}`, ordered: true }),
        })),
      }),
    ),
    busy(async (round) => {
      const action = await queue.submit({
        tenant: tenant(round),
        action: `a${round}`,
        type: 'T',
        jobs: [{}, { delayMs: 50 }, {}],
      })
      if (round % 3 === 0) await action.cancel()
    }),
    busy((round) => queue.cancel(`${round}-${round % 20}`, { tenant: `t${(round + (round % 20)) % 17}` })),
    busy(async (round) => {
      const control = queue.tenant(tenant(round))
      await control.set({ weight: 1 + (round % 3), level: round % 4 ? null : 'high' })
      if (round % 5 === 0) await control.pause()
      else await queue.tenant(tenant(round - 1)).resume()
    }),
    busy(async (round) => {
      // Held until the lease runs out.
      if (round % 20 === 0) await queue.claim(3)
      if (round % 10 === 0) await queue.deadLetters.retryAll({ all: true }).finished
      await queue.runDelayed({ tenant: tenant(round) })
    }),
  ]

  await until(async () => (await queue.counts()).audits >= 5)
  isOver = true
  await Promise.all(working)

  expect(runs).toBeGreaterThan(200)
  expect(Object.fromEntries(await repaired(queue))).toEqual({})
})
