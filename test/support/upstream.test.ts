import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Upstream, UpstreamClient } from './upstream.ts'

let upstream: Upstream
let client: UpstreamClient

beforeAll(async () => {
  upstream = await Upstream.start()
  client = await UpstreamClient.connect(upstream.port)
})
afterAll(async () => {
  client.close()
  await upstream.stop()
})
beforeEach(() => upstream.forget())

describe('the upstream recorder', () => {
  it('remembers who called, with which fence, on the clock of the caller', async () => {
    const before = Number(process.hrtime.bigint()) / 1e6
    await client.call({ job: 'j1', tenant: 'a', fence: 1757900000123456n })
    const after = Number(process.hrtime.bigint()) / 1e6

    const [arrival] = await upstream.arrivals()

    expect(arrival).toMatchObject({ job: 'j1', tenant: 'a', fence: '1757900000123456' })
    expect(arrival?.at).toBeGreaterThan(before)
    expect(arrival?.until).toBeLessThan(after)
  })

  it('counts the busiest window, by tenant too, and the calls in flight', async () => {
    const call = (tenant: string) => client.call({ job: 'j', tenant, fence: 1, holdMs: 30 })
    await Promise.all([call('a'), call('a'), call('b')])
    await call('b')

    const report = await upstream.report({ permits: 10, windowMs: 10_000 })

    expect(report.total).toBe(4)
    expect(report.busiest.count).toBe(4)
    expect(report.busiestByTenant).toEqual({ a: 2, b: 2 })
    expect(report.mostAtOnce).toBe(3)
    expect(report.usedShare).toBeGreaterThan(0)
  })
})
