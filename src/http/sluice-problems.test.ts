import { expect, it } from 'vitest'
import { errorCodes, InvalidJobError, ScriptError, StoreUnavailableError } from '../errors.ts'
import { kindsOfCodes, problemOfSluiceError } from './sluice-problems.ts'

it('says of every error code what is answered', () => {
  expect(Object.keys(errorCodes).filter((code) => !Object.hasOwn(kindsOfCodes, code))).toEqual([])
})

it('names the job that cannot be submitted', () => {
  const problem = problemOfSluiceError(new InvalidJobError({ problem: 'its type is missing', index: 3 }))

  expect(problem?.document()).toMatchObject({
    status: 400,
    code: 'SLUICE_INVALID_JOB',
    errors: [{ path: 'body.jobs.3', problem: 'its type is missing' }],
  })
})

it('says that the store is away and when to come again, but not where it is', () => {
  const error = new StoreUnavailableError({ reason: 'connect ENOENT /secret/redis.sock', outcome: 'not-sent' })
  const problem = problemOfSluiceError(error)

  expect(problem?.statusCode).toBe(503)
  expect(problem?.headers).toEqual({ 'retry-after': '2' })
  expect(JSON.stringify(problem?.document())).not.toContain('secret')
})

it('shows nothing of what is our own fault', () => {
  expect(problemOfSluiceError(new ScriptError({ script: 's', detail: 'd' }))).toBeUndefined()
  expect(problemOfSluiceError(new Error('x'))).toBeUndefined()
})
