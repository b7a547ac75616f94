import { expect, it } from 'vitest'
import { jobsOf } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { admitJob } from './admit-job.ts'
import type { ClaimReply } from './finish-and-claim.ts'

const store = useScriptStore()

/** At 100/s without jitter: a permit every 10 ms. */
const limits = {
  queue: { kind: 'bucket', limit: 100, windowMs: 1_000, burst: 1, jitterMs: 0 },
  tenant: { kind: 'bucket', limit: 50, windowMs: 1_000, burst: 1, jitterMs: 100 },
} as const

async function claimOne(): Promise<{ fence: string; jobKey: string; standing: string }> {
  await store.submit('a', 1)
  return address(await store.claim(1))
}

function address(claim: ClaimReply) {
  const [job] = jobsOf(claim)
  return { fence: claim.fence, jobKey: job?.jobKey ?? '', standing: job?.standing ?? '' }
}

function admit(job: { fence: string; jobKey: string; standing: string }) {
  return admitJob(store.requests(), { ...job, nowUs: store.nowUs })
}

it('charges every bucket once more', async () => {
  await store.begin({ limits })
  const job = await claimOne()
  store.now += 1_000_000

  const { reply, changes } = await store.changesOf(() => admit(job))

  expect(reply).toEqual({
    freshMs: undefined,
    word: 'admitted',
  })
  expect(changes).toEqual({
    'client:me': {
      '2': '2',
    },
    limits: {
      'queue/queue': '1001010000:1001000000:0',
      'queue/queue/jitter': '0:1000000000:2:0:1000000000',
      'tenant/tenant/jitter': '100000:1000000000:2:0:1000000000',
    },
    queue: {
      'granted:queue/queue': '2',
      'granted:tenant/tenant': '2',
      'state.fence': 1_001_000_000,
    },
    'tenant:a': {
      'bucket:tenant': '1001022000:1001000000:0',
    },
  })
})

it('charges nothing while one bucket cannot grant, and says how long to wait', async () => {
  await store.begin({ limits })
  const job = await claimOne()
  store.now += 15_000

  const { reply, changes } = await store.changesOf(() => admit(job))

  expect(reply).toEqual({
    waitMs: 7,
    word: 'wait',
  })
  expect(changes).toEqual({ 'client:me': { 2: '2' }, queue: { 'denied:tenant/tenant/rate': '1' } })
})

it('keeps for less what the tenant’s strict share grants late', async () => {
  await store.begin({
    limits: { queue: { kind: 'bucket', limit: 100, windowMs: 1_000, burst: 4, jitterMs: 50 } },
    share: 'strict',
  })
  await store.submit('a', 2)
  await store.submit('b', 2)
  await store.submit('c', 2)
  const job = address(await store.claim(1))
  store.now += 32_475 + 1_000

  expect(await admit(job)).toEqual({ word: 'admitted', freshMs: 30 - 1 })
})

it('admits at once where there is no bucket', async () => {
  const job = await claimOne()

  expect(await admit(job)).toEqual({ word: 'admitted', freshMs: undefined })
})

it('counts for a tenant that was forgotten while its last job ran, and forgets it again', async () => {
  await store.begin({ limits })
  const job = await claimOne()
  const tenant = 'test:{q}:q:tenant:a'
  await store.client.del(tenant)
  store.now += 1_000_000

  const { reply, changes } = await store.changesOf(() => admit(job))

  expect(reply).toMatchObject({ word: 'admitted' })
  expect(changes['tenant:a']).toMatchObject({ 'bucket:tenant': '1001022000:1001000000:0', idle: '1' })
  expect(await store.client.pttl(tenant)).toBeGreaterThan(0)
})

it('does not admit a job that is no longer the caller’s', async () => {
  await store.begin({ limits })
  const job = await claimOne()

  const { reply, changes } = await store.changesOf(() => admit({ ...job, fence: '7' }))

  expect(reply).toEqual({ word: 'stale' })
  expect(changes).toEqual({})
})

it('answers a repeated request from memory and charges nothing', async () => {
  await store.begin({ limits })
  await store.submit('a', 1)
  const job = address(await store.claim(1, {}, 'worker'))
  store.now += 1_000_000
  const first = await admit(job)
  store.repeatFrom1()

  const { reply, changes } = await store.changesOf(() => admit(job))

  expect(reply).toEqual(first)
  expect(changes).toEqual({})
})

it('closes limits when another server answers than the one that granted', async () => {
  await store.begin({ limits })
  const job = await claimOne()
  store.now += 1_000_000
  store.serverId = 'server-2'

  const { reply, changes } = await store.changesOf(() => admit(job))

  expect(reply).toEqual({ word: 'wait', waitMs: 1_100 })
  expect(changes).toEqual({
    'client:me': {
      '2': '2',
    },
    queue: {
      'denied:tenant/tenant/restart': '1',
      server: 'server-2',
      'state.restarted_at': 1_001_000_000,
      'state.restarts': 1,
    },
  })
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(admit({ fence: '1', jobKey: 'normal:default:1:a', standing: 'normal' })).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})

it('runs while Redis is out of memory', async () => {
  const job = await claimOne()

  expect(await store.outOfMemory(() => admit(job))).toMatchObject({ word: 'admitted' })
})
