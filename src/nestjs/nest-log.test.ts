import { afterEach, expect, it, vi } from 'vitest'
import { logger, nestLog } from './nest-log.ts'

afterEach(() => vi.restoreAllMocks())

it('says why, in warnings too', () => {
  const warn = vi.spyOn(logger, 'warn').mockReturnValue()
  const failed = vi.spyOn(logger, 'error').mockReturnValue()
  const error = new Error('connect ECONNREFUSED')

  nestLog({ level: 'warn', event: 'webhook.failed', message: 'Nobody was told.', error })
  nestLog({ level: 'warn', event: 'worker.unknown-type', message: 'No processor.' })
  nestLog({ level: 'error', event: 'worker.exchange-failed', message: 'Not served.', error })

  expect(warn.mock.calls).toEqual([
    [`webhook.failed: Nobody was told.\n${error.stack}`],
    ['worker.unknown-type: No processor.'],
  ])
  expect(failed.mock.calls).toEqual([['worker.exchange-failed: Not served.', error.stack]])
})
