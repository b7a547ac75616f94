import { describe, expect, it } from 'vitest'
import { finishedAs, shortly } from '../../../test/support/script-store/script-jobs.ts'
import type { ScriptStore } from '../../../test/support/script-store/script-store.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { keyPrefix } from '../keys.ts'

const store = useScriptStore()

const ERROR = '{"name":"E","message":"m"}'

describe('finishing', () => {
  async function finishOne(finish: Parameters<ScriptStore['finish']>[1]) {
    await store.submit('a', 1)
    const claim = await store.claim(1)
    store.now += 2_000_000
    return store.changesOf(() => store.finish(claim, finish))
  }

  it('leaves nothing of a job that succeeded but counts', async () => {
    const { reply, changes } = await finishOne({ outcome: 'succeeded' })

    expect(reply).toEqual({
      fence: '0',
      freshMs: undefined,
      hasDuties: false,
      hasTicks: false,
      holdsAlarm: false,
      jobs: [],
      kept: [],
      stale: [],
      waitMs: undefined,
      word: 'idle',
      isToRecord: false,
    })
    expect(changes).toEqual({
      'claim:1000000000': null,
      'client:me': {
        '2': '2',
      },
      leases: null,
      queue: {
        'state.running': null,
        'state.running:normal': null,
        succeeded: '1',
      },
      running: null,
    })
  })

  it('puts a failed job aside until its next try', async () => {
    const { changes } = await finishOne({ outcome: 'retry', delayMs: 1_500, error: ERROR })

    expect(changes).toEqual({
      aside: {
        'normal:default:1000000000:a': '1,0,0,1002000,retry,{"name":"E","message":"m"}|rs|SEND|||1',
      },
      'claim:1000000000': null,
      'client:me': {
        '2': '2',
      },
      delayed: {
        'normal:default:1000000000:a': 1_003_500_000,
      },
      events: ['type job.failed tenant a job normal:default:1000000000:a reason m'],
      leases: null,
      queue: {
        retried: '1',
        'state.delayed': 1,
        'state.running': null,
        'state.running:normal': null,
      },
      running: null,
      'tenant:a': {
        '(expires)': null,
        idle: null,
        'state.delayed': 1,
        'pace.uncounted': 1,
      },
    })
  })

  it('puts a throttled job aside without costing it a retry', async () => {
    const { changes } = await finishOne({ outcome: 'throttled', delayMs: 3_000 })

    expect(changes).toEqual({
      aside: {
        'normal:default:1000000000:a': '0,0,1,1002000,upstream,|rs|SEND|||1',
      },
      'claim:1000000000': null,
      'client:me': {
        '2': '2',
      },
      delayed: {
        'normal:default:1000000000:a': 1_005_000_000,
      },
      leases: null,
      queue: {
        'state.delayed': 1,
        'state.running': null,
        'state.running:normal': null,
        throttled: '1',
      },
      running: null,
      'tenant:a': {
        '(expires)': null,
        idle: null,
        'state.delayed': 1,
        'pace.backoff': 3000,
        'pace.uncounted': 1,
        'state.throttled': 8_589_935_594,
      },
    })
  })

  it('puts a job of unknown type aside, and remembers since when it is unknown', async () => {
    const { changes } = await finishOne({ outcome: 'unknown', delayMs: 30_000 })

    expect(changes).toEqual({
      aside: {
        'normal:default:1000000000:a': '0,0,0,1002000,unknown-type,|rs|SEND|||1',
      },
      'claim:1000000000': null,
      'client:me': {
        '2': '2',
      },
      delayed: {
        'normal:default:1000000000:a': 1_032_000_000,
      },
      leases: null,
      queue: {
        'state.delayed': 1,
        'state.running': null,
        'state.running:normal': null,
        unknown_type: '1',
      },
      running: null,
      'tenant:a': {
        '(expires)': null,
        idle: null,
        'state.delayed': 1,
        'pace.uncounted': 1,
      },
    })
  })

  it('keeps a dead letter with its reason and error', async () => {
    const { changes } = await finishOne({ outcome: 'dead', reason: 'discarded', error: ERROR })

    expect(changes).toEqual({
      'claim:1000000000': null,
      'client:me': {
        '2': '2',
      },
      dead: {
        'normal:default:1000000000:a': 1_002_000_000,
      },
      'dead:jobs': {
        'normal:default:1000000000:a': '1002000,discarded|1,0,0,0,discarded,{"name":"E","message":"m"}|rs|SEND|||1',
      },
      events: ['type job.dead tenant a job normal:default:1000000000:a reason discarded'],
      leases: null,
      queue: {
        failed: '1',
        'state.running': null,
        'state.running:normal': null,
      },
      running: null,
    })
  })

  it.each([
    ['failed', '1,0,0'],
    ['throttled', '0,0,1'],
    ['unknown-type', '0,0,0'],
    ['unreadable', '0,0,0'],
  ] as const)('counts the run that a job has died of as what it was: %s', async (reason, counts) => {
    const { changes } = await finishOne({ outcome: 'dead', reason, error: ERROR })

    expect(Object.values(changes['dead:jobs'] ?? {})).toEqual([expect.stringContaining(`|${counts},0,${reason},`)])
  })

  it('trims dead letters past their time, and counts them', async () => {
    await store.begin({ keepDeadLettersMs: 1_000 })
    await finishOne({ outcome: 'dead', reason: 'failed', error: ERROR })

    const { changes } = await finishOne({ outcome: 'dead', reason: 'failed', error: ERROR })

    expect(Object.keys(changes.dead ?? {})).toHaveLength(2)
    expect(await store.client.zcard(store.keys().dead)).toBe(1)
    expect(await store.client.hlen(store.keys().deadJobs)).toBe(1)
    expect(await store.counts('deadLettersExpired')).toEqual([1])
  })

  it('puts a released job back to the front of its lane', async () => {
    await store.submit('a', 3)
    const claim = await store.claim(2)

    const { changes } = await store.changesOf(() => store.finish(claim, { outcome: 'released' }))

    expect(changes).toEqual({
      aside: {
        'normal:default:1000000000:a': '|rs|SEND|||1',
        'normal:default:1000000001:a': '|rs|SEND|||2',
      },
      'claim:1000000000': null,
      'client:me': {
        '2': '2',
      },
      'front:normal:default:a': ['normal:default:1000000000:a', 'normal:default:1000000001:a'],
      leases: null,
      queue: {
        released: '2',
        'state.running': null,
        'state.running:normal': null,
        'state.waiting': 3,
      },
      running: null,
      'tenant:a': {
        'state.front': 2,
        'state.waiting': 3,
        'pace.uncounted': 2,
      },
    })
    expect(shortly(await store.claim(5))).toBe('a1 a2 a3')
  })

  it('finishes and claims in one call', async () => {
    await store.submit('a', 2)
    const claim = await store.claim(1)

    const { reply, changes } = await store.changesOf(() =>
      store.claim(1, { finished: finishedAs(claim, { outcome: 'succeeded' }) }),
    )

    expect(shortly(reply)).toBe('a2')
    expect(changes).toEqual({
      'claim:1000000000': null,
      'claim:1000000001': {
        'normal:default:1000000001:a': '|rs|SEND|||2',
      },
      'client:me': {
        '2': '2',
      },
      'lane:normal:default:a': null,
      leases: {
        '1000000000:me': null,
        '1000000001:me': 1_015_000_000,
      },
      queue: {
        claimed: '2',
        'state.fence': 1_000_000_001,
        'state.virtual:normal': 2_000_000,
        'state.waiting': null,
        'state.weights:normal': null,
        succeeded: '1',
        'state.starts': 2,
      },
      'ready:normal': null,
      'since:normal': null,
      'tenant:a': {
        'normal.reached': 2000,
        '(expires)': true,
        idle: '1',
        'normal.entitled': 2_000_000,
        'normal.lane': null,
        'normal.lanes': null,
        'normal.received': 2,
        'normal.score': null,
        'normal.used': null,
        'normal.virtual': 2_000_000,
        'state.waiting': null,
      },
    })
  })

  it('refuses what is no longer the caller’s, by its position, and finishes the rest', async () => {
    await store.submit('a', 2)
    const claim = await store.claim(2)
    const [first, second] = finishedAs(claim, { outcome: 'succeeded' })
    if (!first || !second) throw new Error('two jobs were to be claimed')

    const stale = await store.changesOf(() => store.claim(0, { finished: [{ ...first, fence: '7' }] }))
    const mixed = await store.claim(0, { finished: [{ ...first, fence: '7' }, second] })

    expect(stale.reply.stale).toEqual([0])
    expect(stale.changes).toEqual({ 'client:me': { 2: '2' } })
    expect(mixed.stale).toEqual([0])
    expect(await store.counts('succeeded', 'running')).toEqual([1, 1])
  })

  it('finishes a claim that is told of as a whole, and what is left of it when its lease has been taken back', async () => {
    await store.submit('a', 4)
    const [whole, lost] = [await store.claim(2), await store.claim(2)]
    const told = [...finishedAs(whole, { outcome: 'succeeded' }), ...finishedAs(lost, { outcome: 'succeeded' })]
    const untold = new Map([whole, lost].map(({ fence }) => [fence, 2]))
    await store.client.hdel(`${keyPrefix('test', 'q')}claim:${lost.fence}`, told[2]?.jobKey ?? '')

    const { reply, changes } = await store.changesOf(() => store.claim(0, { finished: told, untold }))

    expect(reply.stale).toEqual([2])
    expect(changes).toMatchObject({ [`claim:${whole.fence}`]: null, [`claim:${lost.fence}`]: null, leases: null })
    expect(await store.counts('succeeded', 'running')).toEqual([3, 1])
  })

  it('counts a job that is told twice in one call once, as it was told first; the repeat is stale', async () => {
    await store.submit('a', 3)
    const claim = await store.claim(3)
    const [first, second] = finishedAs(claim, { outcome: 'succeeded' })
    if (!first || !second) throw new Error('three jobs were to be claimed')
    const released = { ...second, finish: { outcome: 'released' } } as const

    const { stale } = await store.claim(0, {
      finished: [first, second, first, released],
      untold: new Map([[claim.fence, 3]]),
    })

    expect(stale).toEqual([2, 3])
    expect(await store.counts('succeeded', 'released', 'running')).toEqual([2, 0, 1])
  })
})
