import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { memoryUpstream } from './memory-upstream.ts'
import { startUpstream, type Upstream, type UpstreamOptions } from './upstream.ts'

let upstream: Upstream

beforeAll(async () => {
  upstream = await startUpstream({ limit: 3, windowMs: 60_000, latencyMs: 20 })
})
afterAll(() => upstream.stop())
beforeEach(() => upstream.forget())

const call = async (path: string) => (await fetch(upstream.url + path, { method: 'POST', body: '{}' })).status

describe('the upstream', () => {
  it('answers 429 with Retry-After to a call that is one too many, and counts it as a violation', async () => {
    const first = [await call('/a'), await call('/b'), await call('/c')]
    const refused = await fetch(`${upstream.url}/d`)

    expect(first).toEqual([200, 200, 200])
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toBe('60')
    expect(await upstream.report()).toEqual({ calls: 4, violations: 1, busiest: 4, limit: 3, windowMs: 60_000 })
  })

  it('says of each call when it came and when it was answered, on the clock of this machine', async () => {
    const before = Number(process.hrtime.bigint()) / 1e6
    await call('/a/1')
    const after = Number(process.hrtime.bigint()) / 1e6

    const [seen, ...others] = await upstream.calls()

    expect(others).toEqual([])
    expect(seen).toMatchObject({ path: '/a/1', status: 200 })
    expect(seen?.at).toBeGreaterThan(before)
    expect(seen?.answeredAt).toBeGreaterThanOrEqual((seen?.at ?? 0) + 19)
    expect(seen?.answeredAt).toBeLessThan(after)
  })

  it.each<[string, object, RegExp]>([
    ['no limit', { limit: 0 }, /limit must be a whole number of at least 1, not 0/],
    ['a limit that is no number', { limit: Number.NaN }, /limit must be .*, not NaN/],
    ['half a call', { limit: 2.5 }, /limit must be .*, not 2\.5/],
    ['no window', { limit: 1, windowMs: 0 }, /windowMs must be a number above 0, not 0/],
    ['less than no time', { limit: 1, latencyMs: -1 }, /latencyMs must be a number of at least 0, not -1/],
  ])('is not started with %s, in which any test would pass; nor is one in memory', async (_, options, problem) => {
    await expect(startUpstream(options as UpstreamOptions)).rejects.toThrow(problem)
    expect(() => memoryUpstream(options as UpstreamOptions)).toThrow(problem)
  })

  it('does not start on a port that is taken, and says so', async () => {
    const port = Number(new URL(upstream.url).port)

    await expect(startUpstream({ limit: 1, port })).rejects.toThrow(/did not start: .*EADDRINUSE/)
  })
})
