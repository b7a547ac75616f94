import { expect, it } from 'vitest'
import { finishedAs, shortly } from '../../../test/support/script-store/script-jobs.ts'
import type { ScriptStore } from '../../../test/support/script-store/script-store.ts'
import { sharedLimit } from '../../../test/support/script-store/shared-limits.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import type { QueueOptions } from '../../engine/queue-options.ts'
import { acquirePermits } from './acquire-permits.ts'
import type { ClaimReply } from './finish-and-claim.ts'
import { pauseQueue } from './pause-queue.ts'

const store = useScriptStore()

const slots = (max: number, name?: string) => sharedLimit({ kind: 'concurrency', max }, name)
const daily = { kind: 'window', limit: 1, windowMs: 86_400_000 } as const
const operator = () => store.requests('operator')

function claimOf(queue: string, wanted: number, claim: Parameters<ScriptStore['claim']>[1] = {}): Promise<ClaimReply> {
  store.use(queue)
  return store.claim(wanted, claim, `worker-${queue}`)
}

function finishOf(queue: string, claimed: ClaimReply, wanted: number): Promise<ClaimReply> {
  return claimOf(queue, wanted, { finished: finishedAs(claimed, { outcome: 'succeeded' }) })
}

/** Starts over with queues of these limits, each with jobs of one tenant of its name. */
async function begin(queues: Readonly<Record<string, QueueOptions['limits']>>): Promise<void> {
  await store.empty()
  store.group = 'gitlab'
  for (const [queue, limits] of Object.entries(queues)) {
    store.use(queue)
    await store.register({ limits } as QueueOptions)
    await store.submit(queue, 20)
  }
}

/** What `b` gets of four slots it has had all of, when `a` has done that meanwhile. */
async function leftToB(does: () => Promise<unknown>): Promise<string> {
  const four = await claimOf('b', 4)
  store.use('a')
  await does()
  return shortly(await finishOf('b', four, 4))
}

const upstream = slots(4)
const claims = () => claimOf('a', 4, { idleForMs: 5_000 })

it('leaves half of the slots to a queue that waits for one', async () => {
  await begin({ a: { upstream }, b: { upstream } })

  expect(await leftToB(claims)).toBe('b5 b6')
})

it('leaves none to a queue that is paused', async () => {
  await begin({ a: { upstream }, b: { upstream } })
  store.use('a')
  await pauseQueue(operator(), { isPaused: true, nowUs: store.nowUs })

  expect(await leftToB(claims)).toBe('b5 b6 b7 b8')
})

it('leaves none to a queue that has been paused since it waited', async () => {
  await begin({ a: { upstream }, b: { upstream } })
  const pausedThen = async () => {
    await claims()
    await pauseQueue(operator(), { isPaused: true, nowUs: store.nowUs })
    await claims()
  }

  expect(await leftToB(pausedThen)).toBe('b5 b6 b7 b8')
})

it('leaves none to a queue that only waits on a level that is paused', async () => {
  await begin({ a: { upstream }, b: { upstream } })
  store.use('a')
  await pauseQueue(operator(), { isPaused: true, level: 'normal', nowUs: store.nowUs })

  expect(await leftToB(claims)).toBe('b5 b6 b7 b8')
})

it.each([
  ['its own limit', { upstream, day: daily }],
  ['a limit of the level', { upstream, levels: { normal: daily } }],
] as const)('leaves none to a queue that is kept away by %s', async (_, limits) => {
  await begin({ a: limits, b: { upstream } })
  await finishOf('a', await claimOf('a', 1), 0)

  expect(await leftToB(claims)).toBe('b5 b6 b7 b8')
})

it('leaves half to a queue that another limit lets go on in a moment', async () => {
  const paced = { kind: 'bucket', limit: 1, windowMs: 1_000, jitterMs: 0 } as const
  await begin({ a: { upstream, paced }, b: { upstream } })
  await finishOf('a', await claimOf('a', 1), 0)

  expect(await leftToB(claims)).toBe('b5 b6')
})

it.each([
  ['acquires permits', () => acquireRate()],
  ['tells of what it has finished', () => claimOf('a', 0)],
] as const)('leaves none to a queue that only %s', async (_, does) => {
  await begin({ a: { upstream, rate: '10/s' }, b: { upstream } })

  expect(await leftToB(does)).toBe('b5 b6 b7 b8')
})

it('keeps the mark of a process that waits while another one of the queue has its hands full', async () => {
  await begin({ a: { upstream }, b: { upstream } })
  const own = await claimOf('a', 1)
  const three = await claimOf('b', 4)
  await claimOf('a', 1, { idleForMs: 5_000 })
  await finishOf('a', own, 1)

  expect(shortly(await finishOf('b', three, 4))).toBe('b4 b5')
})

it('leaves none of one limit to a queue that waits for another', async () => {
  await begin({ a: { x: slots(4, 'x') }, c: { y: slots(1, 'y') } })
  await claimOf('c', 2, { idleForMs: 5_000 })

  expect(shortly(await claimOf('a', 4))).toBe('a1 a2 a3 a4')
})

function acquireRate() {
  const asked = { limits: ['rate'], permits: [1], level: 'normal', stale: undefined, nowUs: store.nowUs } as const
  return acquirePermits(store.requests('web'), asked)
}
