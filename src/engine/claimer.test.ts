import { expect, it } from 'vitest'
import { systemClock } from '../clock.ts'
import { StoreUnavailableError } from '../errors.ts'
import { encodeRecord } from '../store/record.ts'
import type { Redis } from '../store/redis.ts'
import type { Requests } from '../store/requests.ts'
import { Claimer } from './claimer.ts'
import { CongestionRecorder } from './congestion-recorder.ts'
import type { LogEntry } from './log.ts'
import { QueueFigures } from './queue-figures.ts'
import type { QueueSettings } from './queue-options.ts'
import { Recovery } from './recovery.ts'
import { RunEnds } from './run-ends.ts'

const away = new StoreUnavailableError({ reason: 'test', outcome: 'not-sent' })
const claim = { wanted: 2, leaseMs: 1_000, levels: ['normal'] } as const

/** As finish-and-claim replies: one job, and perhaps more if it is asked again. */
function oneJob(word: 'claimed' | 'again', { isToRecord = false } = {}): unknown[] {
  const job = `normal:default:1:a\u001e${encodeRecord('1', 'T', '', '', 'null')}`
  return [word, [], -1, 0, '7', 0, job, 0, [], 0, isToRecord ? 1 : 0]
}

function claimerWith(replies: (() => unknown)[], recordCongestion = () => {}): Claimer {
  const requests = { client: 'me', keys: {}, run: async () => replies.shift()?.() } as unknown as Requests
  return new Claimer({
    ...{ name: 'q', log: () => {}, clock: systemClock, requests, recordCongestion },
    redis: {} as Redis,
    settings: {} as QueueSettings,
    figures: new QueueFigures(),
    ends: new RunEnds(),
    recovery: new Recovery({ clock: systemClock, leaseMs: 1_000 }),
    onDue: () => {},
  })
}

function fail(): never {
  throw away
}

it('answers the jobs that it has although asking for more has failed', async () => {
  const jobs = await claimerWith([() => oneJob('again'), fail]).claim(claim)

  expect(jobs).toMatchObject([{ id: 'normal:default:1:a', fence: '7' }])
})

it('says that it failed when it has none', async () => {
  await expect(claimerWith([fail]).claim(claim)).rejects.toBe(away)
})

it('does not wait until the congestion is recorded, and makes no fault of its own of a gap', async () => {
  const log: LogEntry[] = []
  let giveUp = () => {}
  const stored = new Promise<void>((_, reject) => {
    giveUp = () => reject(away)
  })
  const recorder = new CongestionRecorder({ queue: 'q', store: () => stored, log: (entry) => log.push(entry) })
  const claimer = claimerWith([() => oneJob('claimed', { isToRecord: true })], () => recorder.record())

  expect(await claimer.claim(claim)).toHaveLength(1)

  giveUp()
  await recorder.settled()
  expect(log).toMatchObject([{ event: 'congestion.unrecorded' }])
})
