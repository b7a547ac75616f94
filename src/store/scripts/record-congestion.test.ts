import { expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { recordCongestion } from './record-congestion.ts'

const store = useScriptStore({ limits: { queue: '100/s' } })

function record(most = 50) {
  return recordCongestion(store.requests(), most, store.nowUs)
}

it('writes down the queue and those of its tenants with most backlog', async () => {
  await store.submit('a', 101)
  await store.submit('b', 20)
  await store.submit('c', 1)

  const { reply, changes } = await store.changesOf(() => record(2))

  expect(reply).toBe(2)
  expect(changes).toEqual({
    congestion: ['1000000 122 100.00 2000 1000 3'],
    'congestion:a': ['1000000 101 33.33 4000 1000 0'],
    'congestion:b': ['1000000 20 33.33 1000 1000 0'],
  })
})

it('changes nothing when that was done a moment ago, and keeps as much as fits into the retention', async () => {
  await store.begin({ congestion: { snapshotMs: 1_000, retentionMs: 3_000 } })
  await store.submit('a', 9)
  await record()
  expect((await store.changesOf(() => record())).changes).toEqual({})

  for (let at = 0; at < 4; at++) {
    store.now += 1_000_000
    await record()
  }

  const { congestion, 'congestion:a': ofTenant } = await store.dump()
  expect(congestion).toMatchObject({
    list: [/^1004000/, /^1003000/, /^1002000/].map((at) => expect.stringMatching(at)),
  })
  expect(ofTenant).toMatchObject({ ttl: true })
})

it('is asked of one claim each time it is due, and of none while nothing waits', async () => {
  await store.begin()
  await store.submit('a', 20)
  const asked = async () => {
    const claim = await store.claim(1)
    await store.finish(claim, { outcome: 'succeeded' })
    return claim.isToRecord
  }

  expect([await asked(), await asked()]).toEqual([true, false])

  store.now += 9_999_999
  expect(await asked()).toBe(false)
  store.now += 1
  expect(await asked()).toBe(true)
  store.now += 10_000_000
  expect((await store.claim(20)).isToRecord).toBe(false)
})

it('runs while Redis is out of memory', async () => {
  await store.submit('a', 9)

  await store.outOfMemory(() => record())

  expect(await store.dump()).toHaveProperty('congestion')
})
