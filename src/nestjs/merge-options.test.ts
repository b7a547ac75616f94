import { expect, it } from 'vitest'
import { queueRules } from '../engine/queue-options.ts'
import { mergeOptions } from './merge-options.ts'

it('merges limits, their levels and congestion by name, and takes anything else from the queue', () => {
  const merged = mergeOptions(
    {
      queue: {
        leaseMs: 5_000,
        maxRetries: 1,
        limits: { queue: '500/s', tenant: { calls: '5/s' }, levels: { low: '1/s', high: '9/s' } },
        congestion: { enabled: false, baseBackoffMs: 10 },
      },
    },
    {
      maxRetries: 7,
      limits: { tenant: { mails: '2/s' }, levels: { low: '2/s' } },
      congestion: { baseBackoffMs: 20 },
    },
  )

  expect(merged).toEqual({
    leaseMs: 5_000,
    maxRetries: 7,
    limits: { queue: '500/s', tenant: { mails: '2/s' }, levels: { low: '2/s', high: '9/s' } },
    congestion: { enabled: false, baseBackoffMs: 20 },
    middleware: [],
  })
})

const groups = Object.entries(queueRules).filter(([, rule]) => rule(undefined, '', () => {}) instanceof Object)

it.each(groups.map(([name]) => name))('merges %s, as every option that holds options', (name) => {
  const merged = mergeOptions({ queue: { [name]: { a: 1 } } as object }, { [name]: { b: 2 } } as object)

  expect(merged).toEqual({ [name]: { a: 1, b: 2 }, middleware: [] })
})

it('replaces a limit that is written out, whose parts belong together', () => {
  const merged = mergeOptions(
    { queue: { limits: { queue: { kind: 'bucket', limit: 5, windowMs: 100, burst: 2 } } } },
    { limits: { queue: { kind: 'concurrency', max: 3 } } },
  )

  expect(merged.limits).toEqual({ queue: { kind: 'concurrency', max: 3 } })
})

it('takes an option that is undefined, as an unset variable gives it, for one that is not given', () => {
  const unset = { leaseMs: undefined } as object

  expect(mergeOptions({ queue: { leaseMs: 5_000 } }, unset)).toMatchObject({ leaseMs: 5_000 })
})
