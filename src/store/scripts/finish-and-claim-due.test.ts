import { describe, expect, it } from 'vitest'
import { record, shortly } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { cancelJob } from './cancel-job.ts'
import { addressOf } from './read-job.ts'

const store = useScriptStore()

describe('what is due', () => {
  it('asks to come again while tenants are left that a change of limits puts back in line', async () => {
    await store.begin({ limits: { tenant: { kind: 'concurrency', max: 1 } } })
    for (let n = 0; n < 70; n++) await store.submit(`t${n}`, 2)
    for (let left = 70; left > 0; ) left -= (await store.claim(100)).jobs.length / 2
    await store.register({ limits: {} })

    const first = await store.claim(5, { levels: 'high' })
    const second = await store.claim(5, { levels: 'high' })

    expect([first.word, second.word]).toEqual(['again', 'idle'])
  })

  it('brings a delayed job back before the fresh ones', async () => {
    await store.submit('a', 2)
    await store.submit('a', 0, { kind: 'later', entries: ['+5000', '', record('later')] })
    store.now += 5_000

    const { reply, changes } = await store.changesOf(() => store.claim(2))

    expect(shortly(reply)).toBe('a"later" a1')
    expect(changes).toEqual({
      aside: null,
      'claim:1000005000': {
        'normal:default:01000000002:a': '|rs|SEND|||"later"',
        'normal:default:1000000000:a': '|rs|SEND|||1',
      },
      'client:me': {
        '(expires)': true,
        '1': '1',
      },
      delayed: null,
      'lane:normal:default:a': ['|rs|SEND|||2'],
      leases: {
        '1000005000:me': 1_015_005_000,
      },
      queue: {
        promoted: '1',
        claimed: '2',
        'state.delayed': null,
        'state.fence': 1_000_005_000,
        'state.running': 2,
        'state.running:normal': 2,
        'state.turns': 1,
        'state.virtual:normal': 2_000_000,
        'state.waiting': 1,
        'state.snapshot_due': 1_010_005_000,
        'state.starts': 2,
      },
      running: {
        a: '2',
      },
      'tenant:a': {
        'normal.reached': 2000,
        'normal.longest': 5000,
        'normal.received': 2,
        'normal.since': 1_000_005_000,
        'normal.used': 2000,
        'state.delayed': null,
        'state.waiting': 1,
      },
    })
  })

  it('leaves a lease that ran out to whoever may take it back, and says when it was seen', async () => {
    await store.submit('a', 1)
    const { fence } = await store.claim(1)
    store.now += 15_000_000

    const { reply, changes } = await store.changesOf(() => store.claim(0, { takesBackUntilUs: store.now - 1 }))
    const later = await store.claim(1, { takesBackUntilUs: store.now })

    expect(reply.leftAtUs).toBe(store.now)
    expect(changes).toEqual({ 'client:me': { '2': '2' } })
    expect([shortly(later), later.leftAtUs, later.fence > fence]).toEqual(['a1', undefined, true])
  })

  it('puts the jobs of a lease that ran out at the front again and counts a stall', async () => {
    await store.submit('a', 3)
    await store.claim(2)
    store.now += 15_000_000

    const { changes } = await store.changesOf(() => store.claim(0))

    expect(changes).toEqual({
      aside: {
        'normal:default:1000000000:a': '0,1,0,1015000,stall,|rs|SEND|||1',
        'normal:default:1000000001:a': '0,1,0,1015000,stall,|rs|SEND|||2',
      },
      'claim:1000000000': null,
      'client:me': {
        '2': '2',
      },
      events: [
        'type job.stalled tenant a job normal:default:1000000000:a reason lease',
        'type job.stalled tenant a job normal:default:1000000001:a reason lease',
      ],
      'front:normal:default:a': ['normal:default:1000000000:a', 'normal:default:1000000001:a'],
      leases: null,
      queue: {
        stalled: '2',
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
    expect(shortly(await store.claim(1))).toBe('a1')
  })

  it('lets a stalled job wait longer each time, and makes it a dead letter after maxStalls', async () => {
    await store.begin({ maxStalls: 2 })
    await store.submit('a', 1)
    await store.claim(1)
    store.now += 15_000_000
    await store.claim(1)
    store.now += 15_000_000

    const second = await store.changesOf(() => store.claim(1))
    store.now += 1_000_000
    const back = await store.claim(1)
    store.now += 15_000_000
    const third = await store.changesOf(() => store.claim(1))

    expect(shortly(second.reply)).toBe('')
    expect(second.changes.delayed).toEqual({ 'normal:default:1000000000:a': 1_031_000_000 })
    expect(shortly(back)).toBe('a1')
    expect(third.changes).toEqual({
      'claim:1031000000': null,
      'client:me': {
        '5': '5',
      },
      dead: {
        'normal:default:1000000000:a': 1_046_000_000,
      },
      'dead:jobs': {
        'normal:default:1000000000:a': '1046000,stalled|0,3,0,1046000,stall,|rs|SEND|||1',
      },
      events: [
        'type job.stalled tenant a job normal:default:1000000000:a reason lease',
        'type job.dead tenant a job normal:default:1000000000:a reason stalled',
      ],
      leases: null,
      queue: {
        failed: '1',
        stalled: '3',
        'state.running': null,
        'state.running:normal': null,
      },
      running: null,
    })
  })

  it('drops a cancelled job of a lease that ran out', async () => {
    await store.submit('a', 1)
    await store.claim(1)
    await cancelJob(store.requests('canceler'), addressOf('normal:default:1000000000:a', ''), store.nowUs)
    store.now += 15_000_000

    await store.claim(1)

    expect(await store.counts('canceled', 'stalled', 'running')).toEqual([1, 0, 0])
  })
})
