import { describe, expect, it } from 'vitest'
import { encodeRecord } from '../store/record.ts'
import { finishOf } from './finish.ts'
import { LeasedJob } from './job.ts'

const patience = { maxRetries: 3, maxThrottles: 2 }

function job(history = '', options = ''): LeasedJob {
  return new LeasedJob('normal:default:5:a', '9', history + encodeRecord('1', 'T', '', options, 'null'))
}

describe('a failed run', () => {
  const failed = { kind: 'failed', error: new Error('no') } as const

  it.each([0, 1, 2])('is retried after %i earlier failures, later each time', (attempts) => {
    const finish = finishOf(job(`${attempts},0,0,0,retry,`), failed, patience)

    expect(finish).toMatchObject({ outcome: 'retry', error: expect.stringContaining('"no"') })
    const delayMs = 'delayMs' in finish ? finish.delayMs : 0
    expect(delayMs).toBeGreaterThanOrEqual(750 * 2 ** attempts)
    expect(delayMs).toBeLessThanOrEqual(1_250 * 2 ** attempts)
  })

  it('is the last when the job has had all its retries', () => {
    expect(finishOf(job('3,0,0,0,retry,'), failed, patience)).toMatchObject({ outcome: 'dead', reason: 'failed' })
  })

  it('counts the retries the job itself was given', () => {
    expect(finishOf(job('', '{"maxRetries":0}'), failed, patience)).toMatchObject({ outcome: 'dead' })
    expect(finishOf(job('5,0,0,0,retry,', '{"maxRetries":9}'), failed, patience)).toMatchObject({ outcome: 'retry' })
  })

  it('is not counted against by stalls and throttles', () => {
    expect(finishOf(job('0,4,50,0,upstream,'), failed, patience)).toMatchObject({ outcome: 'retry' })
  })
})

describe('a throttled run', () => {
  it('comes again after what the upstream asked for', () => {
    const result = { kind: 'throttled', retryAfterMs: 700 } as const

    expect(finishOf(job(), result, patience)).toEqual({ outcome: 'throttled', delayMs: 700 })
  })

  it('is the last when the upstream has pushed back too often', () => {
    const result = { kind: 'throttled', retryAfterMs: undefined } as const

    expect(finishOf(job('0,0,2,0,upstream,'), result, patience)).toMatchObject({ outcome: 'dead', reason: 'throttled' })
  })
})

it('takes success and discarding as they are', () => {
  expect(finishOf(job(), { kind: 'succeeded' }, patience)).toEqual({ outcome: 'succeeded' })
  expect(finishOf(job(), { kind: 'discarded', error: 'gone' }, patience)).toMatchObject({
    outcome: 'dead',
    reason: 'discarded',
  })
})
