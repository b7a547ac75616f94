import { expect, it } from 'vitest'
import { jobsOf, record } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { takeDeadLetter } from './take-dead-letter.ts'

const store = useScriptStore()

const KEY = 'normal:default:1000000000:a'

async function bury(): Promise<void> {
  await store.submit('a', 1)
  const claim = await store.claim(1, {}, 'worker')
  await store.finish(claim, { outcome: 'dead', reason: 'failed', error: '{}' }, 'worker')
}

function take(retries: boolean, jobKey = KEY) {
  return takeDeadLetter(store.requests(), { jobKey, retries, nowUs: store.nowUs })
}

it('lets a job run again as if fresh', async () => {
  await bury()
  store.now += 1_000_000

  const { reply, changes } = await store.changesOf(() => take(true))
  const claim = await store.claim(1, {}, 'worker')

  expect(reply).toBe('retried')
  expect(changes).toEqual({
    aside: {
      'normal:default:1000000000:a': '0,0,0,0,retry,|rs|SEND|||1',
    },
    'client:me': {
      '(expires)': true,
      '1': '1',
    },
    dead: null,
    'dead:jobs': null,
    delayed: {
      'normal:default:1000000000:a': 1_001_000_000,
    },
    queue: {
      revived: '1',
      'state.delayed': 1,
    },
    'tenant:a': {
      '(expires)': null,
      idle: null,
      'state.delayed': 1,
      'state.total': 2,
    },
  })
  expect(jobsOf(claim)).toEqual([{ jobKey: KEY, standing: 'normal', record: `0,0,0,0,retry,${record(1)}` }])
})

it('discards a job for good', async () => {
  await bury()

  const { reply, changes } = await store.changesOf(() => take(false))

  expect(reply).toBe('discarded')
  expect(changes).toEqual({
    'client:me': {
      '(expires)': true,
      '1': '1',
    },
    // As long as ids are kept, counted from now.
    canceled: { 'normal:default:1000000000:a': 173_800_000_000 },
    dead: null,
    'dead:jobs': null,
    queue: {
      discarded: '1',
    },
  })
})

it('lets a letter run again that cannot be read, with all of its text as its record', async () => {
  await bury()
  await store.client.hset(store.keys().deadJobs, KEY, 'nonsense')

  const { reply, changes } = await store.changesOf(() => take(true))

  expect(reply).toBe('retried')
  expect(changes.aside).toEqual({ [KEY]: '0,0,0,0,retry,|nonsense' })
})

it('wakes an idle client for a job that runs again', async () => {
  await bury()
  await store.claim(1, { idleForMs: 60_000 }, 'sleeper')

  const { changes } = await store.changesOf(() => take(true))

  expect(changes).toMatchObject({ idle: null, 'wake:sleeper': ['work'] })
})

it('changes nothing for a letter that is not there', async () => {
  const { reply, changes } = await store.changesOf(() => take(true))

  expect(reply).toBe('unknown')
  expect(changes).toEqual({})
})

it('knows no letter that is past its time', async () => {
  await store.begin({ keepDeadLettersMs: 3_600_000 })
  await bury()
  store.now += 3_600_000_000

  expect(await take(true)).toBe('unknown')
})

it.each([true, false])('answers a repeated request from memory and changes nothing (retries: %s)', async (retries) => {
  await bury()
  const first = await take(retries)
  store.repeatFrom1()

  const { reply, changes } = await store.changesOf(() => take(retries))

  expect(reply).toBe(first)
  expect(changes).toEqual({})
})

it('knows no letter in a store that does not know the queue', async () => {
  await store.empty()

  expect(await take(false)).toBe('unknown')
  expect(await store.dump()).toEqual({})
})

it('runs while Redis is out of memory', async () => {
  await bury()

  expect(await store.outOfMemory(() => take(true))).toBe('retried')
})
