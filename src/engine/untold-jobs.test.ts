import { expect, it } from 'vitest'
import { placeOfKey } from '../store/job-place.ts'
import type { FinishedJob } from '../store/scripts/finish-and-claim.ts'
import { UntoldJobs } from './untold-jobs.ts'

function finished(...fences: string[]): FinishedJob[] {
  return fences.map((fence, at) => ({
    fence,
    jobKey: `normal:default:${at}:default`,
    place: placeOfKey(`normal:default:${at}:default`),
    standing: 'normal',
    finish: { outcome: 'succeeded' },
  }))
}

it('answers how many jobs of a claim were untold before each telling', () => {
  const untold = new UntoldJobs()
  untold.claimed('7', 3)
  untold.claimed('8', 1)

  expect(Object.fromEntries(untold.take(finished('7', '7', '8')))).toEqual({ 7: 3, 8: 1 })
  expect(Object.fromEntries(untold.take(finished('7')))).toEqual({ 7: 1 })
})

it('knows nothing of a claim once the store may or may not have heard of its jobs', () => {
  const untold = new UntoldJobs()
  untold.claimed('7', 3)
  const told = finished('7', '7')
  untold.take(told)

  untold.lose(told)

  expect(untold.take(told).size).toBe(0)
})
