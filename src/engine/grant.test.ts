import { beforeEach, expect, it } from 'vitest'
import type { Clock } from '../clock.ts'
import { encodeRecord } from '../store/record.ts'
import type { Requests } from '../store/requests.ts'
import { Grant } from './grant.ts'
import { LeasedJob } from './job.ts'

/** Stands still but for timers: each moves it on to its instant, on the next turn of the event loop. */
class ManualClock implements Clock {
  time = 1_000
  readonly waits: number[] = []

  now(): number {
    return this.time
  }

  date(): number {
    return this.time
  }

  setTimer(fn: () => void, ms: number): () => void {
    this.waits.push(ms)
    const timer = setImmediate(() => {
      this.time += ms
      fn()
    })
    return () => clearImmediate(timer)
  }
}

const job = new LeasedJob('normal:default:1:default', '7', encodeRecord('0', 'T', '', '', 'null'))

let clock: ManualClock
let replies: (() => unknown[])[]

beforeEach(() => {
  clock = new ManualClock()
  replies = []
})

function grant(freshUntil: number | undefined): Grant {
  const requests = {
    run: async () => {
      const reply = replies.shift()
      if (!reply) throw new Error('nobody expected this question')
      return reply()
    },
  }
  return new Grant({ job, clock, requests: requests as unknown as Requests, freshUntil })
}

it('lets the first call go without a question, and asks for the second', async () => {
  const given = grant(1_030)
  await given.admit()

  replies.push(() => ['admitted', 30_000])
  await given.admit()

  expect(replies).toEqual([])
})

it('asks again when the grant is too old, and when its answer has taken too long', async () => {
  const given = grant(999)
  replies.push(
    () => {
      clock.time += 31
      return ['admitted', 30_000]
    },
    () => ['admitted', 30_000],
  )

  await given.admit()

  expect(replies).toEqual([])
})

it('waits as long as the limits say, and asks again', async () => {
  const given = grant(999)
  replies.push(
    () => ['wait', 250_000],
    () => ['admitted', 0],
  )

  await given.admit()

  expect(clock.waits).toEqual([250])
})

it('stops waiting when the signal is aborted, with its reason', async () => {
  const given = grant(999)
  const controller = new AbortController()
  replies.push(() => {
    setTimeout(() => controller.abort(new Error('cancelled')))
    return ['wait', 250_000]
  })
  clock.setTimer = () => () => {}

  await expect(given.admit(controller.signal)).rejects.toThrow('cancelled')
})

it('does not wait when the signal was aborted while it asked', async () => {
  const given = grant(999)
  const controller = new AbortController()
  replies.push(() => {
    controller.abort(new Error('cancelled'))
    return ['wait', 250_000]
  })

  await expect(given.admit(controller.signal)).rejects.toThrow('cancelled')
  expect(clock.waits).toEqual([])
})

it('rejects when the job is no longer the caller’s', async () => {
  const given = grant(999)
  replies.push(() => ['stale'])

  await expect(given.admit()).rejects.toMatchObject({ code: 'SLUICE_LEASE_LOST', jobId: job.id, fence: '7' })
})
