import { describe, expect, it } from 'vitest'
import { finishedAs, record, shortly } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { decodeJobs } from '../../engine/job.ts'
import { admitJob } from './admit-job.ts'
import { changeSettings } from './change-settings.ts'
import type { ClaimReply, Finish, Lesson } from './finish-and-claim.ts'

const store = useScriptStore()

const SECOND = 1_000_000
const succeeded: Finish = { outcome: 'succeeded' }
const quota = (threshold = 0) => ({ limits: { queue: { kind: 'quota', threshold } } }) as const
const read = (remaining: number, resetInMs = 60_000, limit?: number): Lesson => ({
  upstream: '',
  pushback: undefined,
  reading: { remaining, resetInMs, limit },
})

/** Ends a claim's jobs; the first of them tells what its answer said. */
function tell(claim: ClaimReply, lesson: Lesson, wanted = 0): Promise<ClaimReply> {
  const [first, ...others] = finishedAs(claim, succeeded).map((job) => ({ ...job, isSpecial: true }))
  if (!first) throw new Error('jobs were to be claimed')
  return store.claim(wanted, { finished: [{ ...first, lesson }, ...others] })
}

/** `remaining,reset,since,limit,flying` of the queue's quota. */
async function member(name = ''): Promise<string | undefined> {
  const text = await store.client.hget(store.keys().limits, 'queue/queue/quota')
  const found = text?.split('|').find((each) => each.startsWith(`${name},`))
  return found?.split(',').slice(1, 6).join(',')
}

const count = ({ jobs }: ClaimReply) => jobs.length / 2

describe('a quota of which nothing is known', () => {
  it('sends one job out to ask, and the next when that has come back without an answer', async () => {
    await store.begin(quota())
    await store.submit('a', 5)

    const probe = await store.changesOf(() => store.claim(5))
    const meanwhile = await store.claim(5, { idleForMs: 60_000 })
    const next = await store.claim(5, { finished: finishedAs(probe.reply, succeeded) })

    expect(shortly(probe.reply)).toBe('a1')
    expect(probe.changes.limits).toEqual({ 'queue/queue/quota': '0|,-1,0,0,0,1,0' })
    expect(count(meanwhile)).toBe(0)
    expect(shortly(next)).toBe('a2')
  })

  it('grants what the answer leaves as soon as it is there', async () => {
    await store.begin(quota())
    await store.submit('a', 9)

    const next = await tell(await store.claim(5), read(3), 9)

    expect(shortly(next)).toBe('a2 a3 a4')
    expect(await member()).toBe('0,1060000000,1000000000,0,3')
  })

  it('learns what is left also where the upstream is named after another limit, but not after none', async () => {
    const limits = { queue: { kind: 'quota', threshold: 0 }, levels: { normal: { rate: '1000/s' } } } as const
    await store.begin({ limits })
    await store.submit('a', 9)

    await tell(await store.claim(1), { ...read(7), upstream: 'none' })
    expect((await member())?.split(',')[0]).toBe('-1')
    await tell(await store.claim(1), { ...read(7), upstream: 'rate' })
    expect((await member())?.split(',')[0]).toBe('7')
  })

  it('asks again when the worker that asked has died', async () => {
    await store.begin(quota())
    await store.submit('a', 5)
    await store.claim(5)
    store.now += 15 * SECOND

    expect(shortly(await store.claim(5))).toBe('a1')
  })

  it('asks one job at a time also where jobs cost more', async () => {
    await store.begin(quota())
    await store.submit('a', 5, { entries: Array.from({ length: 5 }, (_, at) => `*3;${record(at + 1)}`) })

    const probe = await store.claim(5)
    const next = await tell(probe, read(7), 5)

    expect(shortly(probe)).toBe('a1')
    expect(shortly(next)).toBe('a2 a3')
    expect(await member()).toBe('1,1060000000,1000000000,0,6')
  })

  it('asks anew for a tenant of its own while others wait for nothing', async () => {
    await store.begin({ limits: { tenant: { kind: 'quota', threshold: 0 } } })
    await store.submit('a', 3)
    await store.submit('b', 3)

    const probes = await store.claim(9)
    const [ofA, ofB] = finishedAs(probes, succeeded)
    if (!ofA || !ofB) throw new Error('both were to ask')
    const next = await store.claim(9, { finished: [{ ...ofA, lesson: read(9) }] })

    expect(shortly(probes)).toBe('a1 b1')
    expect(shortly(next)).toBe('a2 a3')
    expect(ofB.place.tenant).toBe('b')
  })
})

describe('a quota', () => {
  /** With so much left for a minute, and nothing in flight. */
  async function known(threshold: number, remaining: number, limit?: number): Promise<void> {
    await store.begin(quota(threshold))
    await store.submit('a', 50)
    await tell(await store.claim(1), read(remaining, 60_000, limit))
  }

  it.each([
    [100, 105, undefined, 5],
    [100, 100, undefined, 0],
    // A tenth of the upstream's limit at most.
    [100, 15, 60, 9],
    [100, 5, 9, 5],
  ])('with threshold %i and %i left of %s grants %i', async (threshold, remaining, limit, granted) => {
    await known(threshold, remaining, limit)

    expect(count(await store.claim(30))).toBe(granted)
  })

  it('denies until the upstream starts over, then asks again', async () => {
    await known(0, 2)
    const last = await store.claim(30)
    await store.finish(last, succeeded)
    const denied = await store.claim(1, { idleForMs: 120_000 })
    store.now += 60 * SECOND - 1
    const early = await store.claim(30)
    store.now += 1

    expect(denied.waitMs).toBe(60_000)
    expect([count(early), count(await store.claim(30))]).toEqual([0, 1])
  })

  it('wakes whom it denies just before the upstream starts over when that happens, not a second later', async () => {
    await known(0, 2)
    await store.finish(await store.claim(30), succeeded)
    store.now += 60 * SECOND - 5_000

    expect((await store.claim(1, { idleForMs: 120_000 })).waitMs).toBe(5)
  })

  it.each([
    ['a later start-over replaces', read(80, 66_000), '80,1066000000,1000000000,0,0'],
    ['the same keeps what is less', read(80, 64_999), '49,1060000000,1000000000,0,0'],
    ['the same lowers', read(20, 60_000), '20,1060000000,1000000000,0,0'],
    ['an earlier one lowers', read(20, 30_000), '20,1060000000,1000000000,0,0'],
    ['an earlier one does not raise', read(80, 30_000), '49,1060000000,1000000000,0,0'],
    ['one that is over says nothing', read(0, 0), '49,1060000000,1000000000,0,0'],
    ['the upstream’s limit is kept', read(80, 60_000, 500), '49,1060000000,1000000000,500,0'],
  ])('learns by the rules: %s', async (_, lesson, expected) => {
    await known(0, 50)

    await tell(await store.claim(1), lesson)

    expect(await member()).toBe(expected)
  })

  it('takes what is in flight off what an answer says, because the upstream may not have counted it', async () => {
    await known(0, 50)
    const probe = await store.claim(1)
    await store.claim(4)

    await tell(probe, read(40))

    expect(await member()).toBe('36,1060000000,1000000000,0,4')
  })

  it('gives that back when an answer shows that the upstream had counted it', async () => {
    await known(0, 50)
    const [first, ...others] = [await store.claim(1), await store.claim(1), await store.claim(1), await store.claim(1)]

    await tell(first as ClaimReply, read(46))
    const doubtful = await member()
    for (const [at, claim] of others.entries()) await tell(claim, read(49 - at))
    const stillDoubtful = await member()
    await tell(await store.claim(1), read(45))

    expect(doubtful).toBe('43,1060000000,1000000000,0,3')
    expect(stillDoubtful).toBe('43,1060000000,1000000000,0,0')
    expect(await member()).toBe('45,1060000000,1000000000,0,0')
  })

  it('is not raised by answers that come in another order than they were given', async () => {
    await known(0, 50)
    const [first, second, third] = [await store.claim(1), await store.claim(1), await store.claim(1)]

    await tell(third as ClaimReply, read(47))
    await tell(first as ClaimReply, read(49))
    await tell(second as ClaimReply, read(48))

    expect((await member())?.split(',')[0]).toBe('45')
  })

  it('gets back what was not started, and knows nothing after a restart', async () => {
    await known(0, 50)
    await store.finish(await store.claim(3), { outcome: 'returned' })
    const before = await member()
    store.serverId = 'server-2'

    expect(before).toBe('50,1060000000,1000000000,0,0')
    expect(count(await store.claim(9))).toBe(1)
  })

  it('is not closed for ever by jobs that ended while it was not there', async () => {
    await store.begin(quota())
    await store.submit('a', 9)
    const probe = await store.claim(1)
    const requests = store.requests('operator')
    await changeSettings(requests, { limits: { queue: { queue: { kind: 'none' } } } }, store.nowUs)
    await store.finish(probe, succeeded)

    await changeSettings(requests, { limits: { queue: { queue: { kind: 'declared' } } } }, store.nowUs)

    expect(count(await store.claim(9))).toBe(1)
  })
})

describe('a pool', () => {
  const pool = { limits: { queue: { kind: 'quota', threshold: 0, pool: ['x', 'y', 'z'] } } } as const

  /** Which member granted each job of a claim. */
  const grantsOf = ({ fence, jobs }: ClaimReply) => decodeJobs(fence, jobs, []).map(({ grant }) => grant.queue)

  /** Ends each job of a claim with what its member's answer said. */
  async function tellAll(claim: ClaimReply, left: Readonly<Record<string, number>>): Promise<void> {
    const grants = grantsOf(claim)
    const finished = finishedAs(claim, succeeded).map((job, at) => {
      const name = grants[at] as string
      return { ...job, isSpecial: true, lesson: { ...read(left[name] ?? 0), member: name } }
    })
    await store.claim(0, { finished })
  }

  it('asks each member once, and grants by the one with most left', async () => {
    await store.begin(pool)
    await store.submit('a', 30)
    const probes = await store.claim(9)
    await tellAll(probes, { x: 2, y: 4, z: 1 })

    const next = await store.claim(9)

    expect(grantsOf(probes)).toEqual(['x', 'y', 'z'])
    expect(grantsOf(next)).toEqual(['y', 'y', 'x', 'y', 'x', 'y', 'z'])
    expect(await member('y')).toBe('0,1060000000,1000000000,0,4')
  })

  it('gives back to the member that granted', async () => {
    await store.begin(pool)
    await store.submit('a', 30)
    await tellAll(await store.claim(9), { x: 2, y: 4, z: 1 })
    const claim = await store.claim(1)
    const finished = finishedAs(claim, { outcome: 'returned' }).map((job) => ({ ...job, isSpecial: true }))

    await store.claim(0, { finished })

    expect(grantsOf(claim)).toEqual(['y'])
    expect(await member('y')).toBe('4,1060000000,1000000000,0,0')
  })

  it('charges a further call to the member whose token makes it', async () => {
    await store.begin(pool)
    await store.submit('a', 30)
    await tellAll(await store.claim(9), { x: 2, y: 3, z: 1 })
    const claim = await store.claim(1)
    const [job] = decodeJobs(claim.fence, claim.jobs, [])
    if (!job) throw new Error('a job was to be claimed')
    const admit = () =>
      admitJob(store.requests(), { fence: job.fence, jobKey: job.key, standing: 'normal', nowUs: store.nowUs })

    const replies = [await admit(), await admit(), await admit()]

    expect(replies.map(({ word }) => word)).toEqual(['admitted', 'admitted', 'wait'])
    expect(await member('y')).toBe('0,1060000000,1000000000,0,1')
    expect(await member('x')).toBe('2,1060000000,1000000000,0,0')
  })

  it('gives a job that costs more than a member has left to one of which nothing is known', async () => {
    await store.begin({ limits: { queue: { kind: 'quota', threshold: 0, pool: ['x', 'y'] } } })
    await store.submit('a', 2)
    await tellAll(await store.claim(1), { x: 3 })
    await store.claim(1)
    await store.submit('b', 1, { entries: [`*5;${record(1)}`] })

    const costly = await store.claim(1)

    expect(grantsOf(costly)).toEqual(['y'])
    expect(await member('x')).toBe('2,1060000000,1000000000,0,1')
  })

  it.each([
    ['says that it has some left', 5_000, 'a3 a4 a5'],
    ['ends without a word: it is asked again', undefined, 'a3'],
  ])(
    'lets a tenant go on as soon as the call of one %s, though another is empty for an hour',
    async (_, left, next) => {
      await store.begin({ limits: { tenant: { tokens: { kind: 'quota', threshold: 0, pool: ['x', 'y'] } } } })
      await store.submit('a', 9)
      const [ofX, ofY] = finishedAs(await store.claim(5), succeeded).map((job) => ({ ...job, isSpecial: true }))
      if (!ofX || !ofY) throw new Error('both members were to be asked')

      const parked = await store.claim(5, { finished: [{ ...ofY, lesson: { ...read(0, 3_600_000), member: 'y' } }] })
      const lesson = left === undefined ? {} : { lesson: { ...read(left, 3_600_000), member: 'x' } }
      await store.claim(0, { finished: [{ ...ofX, ...lesson }] })

      expect(shortly(parked)).toBe('')
      expect(shortly(await store.claim(3))).toBe(next)
    },
  )

  it('hears that a job has ended also where pools of the level and of tenants are called the same', async () => {
    const tokens = (...members: string[]) => ({ tokens: { kind: 'quota', threshold: 0, pool: members } }) as const
    const levels = { normal: tokens('m', 'n') }
    await store.begin({ limits: { queue: tokens('x', 'y'), levels, tenant: tokens('p', 'q') } })
    for (const tenant of ['a', 'b', 'c']) await store.submit(tenant, 2)
    const first = await store.claim(1)
    await store.claim(1)
    expect(count(await store.claim(1))).toBe(0)

    await store.claim(0, { finished: finishedAs(first, succeeded).map((job) => ({ ...job, isSpecial: true })) })

    expect(first.jobs[1]).toContain('^normal&tokens=x&normal/tokens=m&tenant/tokens=p\n')
    expect(decodeJobs(first.fence, first.jobs, [])[0]?.grant).toEqual({ tokens: 'p' })
    expect(count(await store.claim(1))).toBe(1)
  })
})
