import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startUpstream, type Upstream } from './upstream.ts'

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

  it('does not start on a port that is taken, and says so', async () => {
    const port = Number(new URL(upstream.url).port)

    await expect(startUpstream({ limit: 1, port })).rejects.toThrow(/did not start: .*EADDRINUSE/)
  })
})
