import { beforeEach, describe, expect, it } from 'vitest'
import { finishedAs, record } from '../../../test/support/script-store/script-jobs.ts'
import { beginGroup } from '../../../test/support/script-store/shared-limits.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { type Rest, type Resting, stayIdle } from './stay-idle.ts'

const store = useScriptStore()
beforeEach(async () => {
  await store.claim(1)
})

/** A client of the queue that is in use now. */
function resting(client: string, levels = 'high normal low'): Resting {
  return { queueKey: store.keys().queue, client, levels, idleForMs: 30_000 }
}

async function restOf(client: string, levels?: string): Promise<Rest | undefined> {
  const [rest] = await stayIdle(store.redis, [resting(client, levels)], { nowUs: store.nowUs })
  return rest
}

describe('a client whose queue has nothing for it', () => {
  it('stays on the list of the idle, and those whose time is over leave it', async () => {
    await store.claim(1, { idleForMs: 1_000 }, 'gone')
    await store.claim(1, { idleForMs: 10_000 })
    store.now += 5_000_000

    const { reply, changes } = await store.changesOf(() => restOf('me'))

    expect(reply).toEqual({ word: 'idle', waitMs: undefined, holdsAlarm: false })
    expect(changes).toEqual({ idle: { me: 1_035_000_000, gone: null } })
  })

  it('gets the alarm for the next instant, unless another holds it', async () => {
    await store.submit('a', 0, { kind: 'later', entries: ['+3000000', '', record(1)] })

    const { reply, changes } = await store.changesOf(() => restOf('me'))

    expect(reply).toEqual({ word: 'idle', waitMs: 3_000, holdsAlarm: true })
    expect(changes).toEqual({ idle: { me: 1_030_000_000 }, alarm: '1003000000:me' })
    expect(await restOf('other')).toEqual({ word: 'idle', waitMs: 3_000, holdsAlarm: false })
  })

  it('stands there with its levels where it does not serve all', async () => {
    await store.submit('a', 0, { kind: 'later', entries: ['+3000000', '', record(1)] })

    const { changes } = await store.changesOf(() => restOf('me', 'high low'))

    expect(changes).toEqual({
      idle: { 'me high+low': 1_030_000_000 },
      'alarm:high+low': '1003000000:me high+low',
    })
  })

  it('sleeps until the lease of a job that runs is over', async () => {
    await store.submit('a', 1)
    await store.claim(1, {}, 'busy')

    expect(await restOf('me')).toEqual({ word: 'idle', waitMs: 15_000, holdsAlarm: true })
  })
})

describe('a client whose queue may have something for it', () => {
  it.each<{ what: string; happens: () => Promise<unknown> }>([
    { what: 'jobs wait', happens: () => store.submit('a', 1) },
    {
      what: 'a delayed job is due',
      happens: async () => {
        await store.submit('a', 0, { kind: 'later', entries: ['+1000000', '', record(1)] })
        store.now += 1_000_000
      },
    },
    {
      what: 'a lease is over',
      happens: async () => {
        await store.submit('a', 1)
        await store.claim(1, {}, 'killed')
        store.now += 15_000_000
      },
    },
    {
      what: 'an action has a duty',
      happens: async () => {
        await store.openAction('mail', {}, { webhook: 'https://example.com' })
        await store.sealAction('mail')
      },
    },
    {
      what: 'the server is another one',
      happens: async () => {
        store.serverId = 'server-2'
      },
    },
    { what: 'the store was emptied', happens: () => store.client.flushall() },
  ])('is told to claim, and nothing is written: $what', async ({ happens }) => {
    await happens()

    const { reply, changes } = await store.changesOf(() => restOf('me'))

    expect(reply).toEqual({ word: 'claim' })
    expect(changes).toEqual({})
  })

  it('rests again once that has ended', async () => {
    await store.submit('a', 1)
    const claim = await store.claim(1)
    await store.claim(0, { finished: finishedAs(claim, { outcome: 'succeeded' }) })

    expect(await restOf('me')).toMatchObject({ word: 'idle' })
  })
})

it('answers for several queues at once, each by what it has', async () => {
  await beginGroup(store, '100/s', { a: 0, b: 1, c: 0 })
  const queues = ['a', 'b', 'c'].map((queue) => {
    store.use(queue)
    return resting(`worker-${queue}`)
  })
  for (const queue of ['a', 'c']) {
    store.use(queue)
    await store.claim(1, {}, `worker-${queue}`)
  }

  const { reply, changes } = await store.changesOf(() => stayIdle(store.redis, queues, { nowUs: store.nowUs }))

  expect(reply.map(({ word }) => word)).toEqual(['idle', 'claim', 'idle'])
  expect(changes).toEqual({ 'a:idle': { 'worker-a': 1_030_000_000 }, idle: { 'worker-c': 1_030_000_000 } })
})
