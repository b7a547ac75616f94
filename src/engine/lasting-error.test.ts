import { expect, it } from 'vitest'
import { ScriptError, StoreUnavailableError } from '../errors.ts'
import { LastingError } from './lasting-error.ts'
import type { LogEntry } from './log.ts'

const refused = new ScriptError({ script: 'renew-leases', detail: 'NOPERM' })

it('is said once, and anew after things went well', () => {
  const log: LogEntry[] = []
  const lasting = new LastingError((entry) => log.push(entry), {
    event: 'worker.leases-unrenewed',
    message: 'No leases',
  })

  lasting.failed(refused)
  lasting.failed(refused)
  lasting.mended()
  lasting.failed(refused)

  const entry = {
    level: 'error',
    event: 'worker.leases-unrenewed',
    message: `No leases: ${refused.message}`,
    error: refused,
  }
  expect(log).toEqual([entry, entry])
})

it('is none while the store is away', () => {
  const log: LogEntry[] = []
  const lasting = new LastingError((entry) => log.push(entry), {
    event: 'worker.leases-unrenewed',
    message: 'No leases',
  })

  lasting.failed(new StoreUnavailableError({ reason: 'test', outcome: 'not-sent' }))

  expect(log).toEqual([])
})
