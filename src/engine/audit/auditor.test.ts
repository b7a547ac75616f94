import { expect, it } from 'vitest'
import { systemClock } from '../../clock.ts'
import type { Requests } from '../../store/requests.ts'
import { IdlePace } from '../idle-pace.ts'
import { Auditor } from './auditor.ts'

function auditorAt(pace: IdlePace): Auditor {
  const settings = { enabled: true, everyMs: 86_400_000, stepMs: 1_000, idleStepMs: 60_000 }
  // Asked for nothing before its first look, a minute from now.
  const requests = {} as Requests
  return new Auditor({ name: 'q', requests, settings, clock: systemClock, pace, log: () => {} })
}

it('slows the others of its process down only while it serves', async () => {
  const pace = new IdlePace()
  const auditors = Array.from({ length: 4 }, () => auditorAt(pace))

  for (const auditor of auditors) auditor.serve()
  expect(pace.stretch(1_000)).toBe(2_000)

  for (const auditor of auditors) await auditor.close()
  expect(pace.stretch(1_000)).toBe(1_000)
})

it('serves no more once it is closed, though a queue that is stopped still claims', async () => {
  const pace = new IdlePace()
  const auditors = Array.from({ length: 4 }, () => auditorAt(pace))

  for (const auditor of auditors) await auditor.close()
  for (const auditor of auditors) auditor.serve()

  expect(pace.stretch(1_000)).toBe(1_000)
})
