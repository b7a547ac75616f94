import { expect, it } from 'vitest'
import * as errors from './errors.ts'

const examples: errors.SluiceError[] = [
  new errors.InvalidOptionsError('the queue "a"', [{ path: 'leaseMs', problem: 'must be a whole number' }]),
  new errors.InvalidJobError({ index: 3, jobId: 'x', problem: 'its payload has 300000 bytes' }),
  new errors.QueueFullError({ queue: 'a', tenant: 't', maxPending: 5 }),
  new errors.StoreUnavailableError({ reason: 'no reply in time', outcome: 'unknown' }),
  new errors.StoreOutOfMemoryError(),
  new errors.UnsupportedRedisError({ problem: 'Redis 6.0 is too old.' }),
  new errors.StoreFormatError({ queue: 'a', stored: 2, known: 1 }),
  new errors.EmbeddedRedisMissingError({ binary: 'redis-server', install: 'brew install redis' }),
  new errors.OutcomeUnknownError({ operation: 'submit-jobs' }),
  new errors.LeaseLostError({ jobId: 'x', fence: '12' }),
  new errors.ClosedError('The queue "a"'),
  new errors.ActionClosedError({ action: 'q:a:x' }),
  new errors.ActionTakenError({ action: 'q:a:x' }),
  new errors.UnknownActionError({ id: 'q:a:x' }),
  new errors.UnknownQueueError({ queue: 'mail' }),
  new errors.UnknownScheduleError({ schedule: 'nightly' }),
  new errors.AggregateTimeoutError({ type: 'send', timeoutMs: 600_000 }),
  new errors.TooFewReplicasError({ wanted: 1, answered: 0, timeoutMs: 1_000 }),
  new errors.WaitedTooLongError({ what: 'action "q:a:x"', timeoutMs: 50 }),
  new errors.JobTimeoutError({ jobId: 'x', jobTimeoutMs: 30_000 }),
  new errors.PermanentError('gone'),
  new errors.ThrottledError({ retryAfterMs: 1_000 }),
  new errors.UpstreamError({ host: 'api.example.com', status: 502, message: 'api.example.com answered 502' }),
  new errors.ScriptError({ script: 'claim-jobs', detail: 'attempt to index nil' }),
]

it('the table of codes and the classes are the same', () => {
  expect(examples.map((error) => error.code).sort()).toEqual(Object.keys(errors.errorCodes).sort())
})

it.each(examples.map((error) => [error.name, error] as const))('%s is named after its class', (name, error) => {
  expect((errors as Record<string, unknown>)[name]).toBe(error.constructor)
  expect(error).toBeInstanceOf(Error)
  expect(error.message).not.toBe('')
})

it('recognises an error of another copy of the package', async () => {
  const copyPath = `${new URL('./errors.ts', import.meta.url).href}?copy`
  const copy = (await import(/* @vite-ignore */ copyPath)) as typeof errors
  const foreign = new copy.ClosedError('The queue')

  expect(foreign).not.toBeInstanceOf(errors.SluiceError)
  expect(errors.isSluiceError(foreign)).toBe(true)
})

it.each([[undefined], [null], ['SLUICE_CLOSED'], [new Error('no')], [{ code: 'SLUICE_CLOSED' }]])(
  'does not take %s for one of its own',
  (value) => {
    expect(errors.isSluiceError(value)).toBe(false)
  },
)

it('keeps the cause, and has none when none is given', () => {
  const cause = new Error('ECONNREFUSED')

  expect(new errors.StoreOutOfMemoryError({ cause }).cause).toBe(cause)
  expect('cause' in new errors.StoreOutOfMemoryError()).toBe(false)
})

it('names the job by its place and its id', () => {
  expect(new errors.InvalidJobError({ index: 3, jobId: 'x', problem: 'its payload is missing' }).message).toBe(
    'Job 3 (id "x") cannot be submitted: its payload is missing',
  )
})

it('lists every problem of the options', () => {
  const error = new errors.InvalidOptionsError('the queue "a"', [
    { path: 'leaseMs', problem: 'is required' },
    { path: 'alpha', problem: 'must be a number, not "x"' },
  ])

  expect(error.message).toBe(
    'Invalid options for the queue "a":\n- leaseMs is required\n- alpha must be a number, not "x"',
  )
})
