import { expect, it } from 'vitest'
import { StoreUnavailableError } from '../../errors.ts'
import type { Requests } from '../../store/requests.ts'
import { checkScheduleCost } from './schedule-cost.ts'

it('refuses a cost that no limit could grant, though Redis goes away while that is asked', async () => {
  let losses = 2
  const run = async () => {
    if (losses-- > 0) throw new StoreUnavailableError({ reason: 'it was restarted', outcome: 'not-sent' })
    return ['limits', 0, [['queue', 'calls', 'bucket', 10, 1_000_000]]]
  }

  const checked = checkScheduleCost({ run } as unknown as Requests, 'nightly', { type: 'T', cost: 11 })

  await expect(checked).rejects.toThrow('job.cost is 11, more than the limit "calls" could ever grant (10)')
})
