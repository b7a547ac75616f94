import { describe, expect, it } from 'vitest'
import type { ServedQueue } from '../../config/define-config.ts'
import type { InvalidOptionsError } from '../../errors.ts'
import { checkServedQueue } from './check-queue.ts'

const handler = () => Promise.resolve()

function problemsOf(served: object, name = 'web'): Record<string, string> {
  try {
    checkServedQueue(name, served as ServedQueue)
    return {}
  } catch (error) {
    return Object.fromEntries((error as InvalidOptionsError).problems.map(({ path, problem }) => [path, problem]))
  }
}

describe('a queue of the config file', () => {
  it('may have all that it can have', () => {
    const served = {
      limits: { queue: '5/s' },
      concurrency: 50,
      http: { allowHosts: ['api.example.com'], timeoutMs: 5_000 },
      shares: ['partner'],
      schedules: { nightly: { cron: '0 3 * * *', job: { type: 'report' } } },
      processors: { send: handler },
    }

    expect(problemsOf(served)).toEqual({})
    expect(problemsOf({})).toEqual({})
    expect(problemsOf({ http: { timeoutMs: 5_000 } })).toEqual({})
  })

  it.each([
    [{ maxRetrys: 3 }, 'maxRetrys', /did you mean "maxRetries"/],
    [{ http: { allowHost: ['a.example'] } }, 'http.allowHost', /did you mean "allowHosts"/],
    [{ http: { allowHosts: 'a.example' } }, 'http.allowHosts', /must be an array/],
    [{ http: true }, 'http', /must be an object/],
    [{ concurrency: 0 }, 'concurrency', /from 1 to 10000/],
    [{ concurrency: '5' }, 'concurrency', /must be a whole number/],
    [{ shares: 'partner' }, 'shares', /must be a list of names/],
    [{ schedules: { nightly: { job: { type: 'T' } } } }, 'schedules.nightly.cron', /or every must be given/],
    [{ schedules: { nightly: { cron: 'x', job: { type: 'T' } } } }, 'schedules.nightly.cron', /./],
    [{ schedules: { nightly: { every: '1h', job: {} } } }, 'schedules.nightly.job', /cannot be submitted/],
    [{ processors: { send: 'handler' } }, 'processors.send', /must be a function/],
    [{ processors: [handler] }, 'processors', /must be an object/],
    [{ processors: { 'a\u0007': handler } }, 'processors', /control characters/],
  ])('may not have %j', (served, path, problem) => {
    const found = problemsOf(served)

    expect(Object.keys(found)).toEqual([path])
    expect(found[path]).toMatch(problem)
  })

  it('is told all that is wrong at once', () => {
    const found = problemsOf({ limits: { queue: 'fast' }, http: { a: 1 }, schedules: { b: {} } }, 'no name')

    expect(Object.keys(found)).toEqual(['name', 'limits.queue', 'http.a', 'schedules.b.cron', 'schedules.b.job'])
  })
})
