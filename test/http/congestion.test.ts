import { describe, expect, it } from 'vitest'
import { useHttpServer } from './http-server.ts'

const server = useHttpServer()
const path = '/v1/queues/mail'

/** Ten jobs of acme and three of bolt wait, and one of acme was pushed back. */
async function makeBacklog(): Promise<void> {
  await server.mail.limits.change({ queue: '2/s' })
  await server.mail.submit({ tenant: 'acme', jobs: Array.from({ length: 11 }, () => ({ type: 'SEND' })) })
  const [pushed] = await server.mail.claim(1)
  await server.mail.submit({ tenant: 'bolt', jobs: Array.from({ length: 3 }, () => ({ type: 'SEND' })) })
  await pushed?.throttle()
}

describe('GET', () => {
  it('shows how far a queue is behind, and its tenants, the worst first', async () => {
    await makeBacklog()

    const { status, body } = await server.ask('GET', `${path}/congestion`)
    const first = await server.ask('GET', `${path}/congestion?limit=1`)

    expect(status).toBe(200)
    expect(body).toMatchObject({ waiting: 13, activeTenants: 2, worst: { tenant: 'acme', level: 'HIGH' } })
    expect(body.tenants).toMatchObject([
      { tenant: 'acme', waiting: 10, speed: 1, backoffMs: 11_000, etaMs: 10_000, throttles: 1, lastBackoffMs: 11_000 },
      { tenant: 'bolt', waiting: 3, speed: 1, backoffMs: 4_000, level: 'MODERATE', throttles: 0 },
    ])
    expect(first.body.tenants).toMatchObject([{ tenant: 'acme' }])
  })

  it('shows as many tenants as it looks at, and refuses to show more', async () => {
    expect((await server.ask('GET', `${path}/congestion?limit=128`)).status).toBe(200)
    expect((await server.ask('GET', `${path}/congestion?limit=129`)).status).toBe(400)
  })

  it('shows one tenant, and one that nobody knows as one with nothing to do', async () => {
    await makeBacklog()

    const known = await server.ask('GET', `${path}/tenants/bolt/congestion`)
    const unknown = await server.ask('GET', `${path}/tenants/nobody/congestion`)

    expect(known.body).toMatchObject({ tenant: 'bolt', waiting: 3, isMeasured: false, etaAt: expect.any(Number) })
    expect(unknown.body).toMatchObject({ tenant: 'nobody', waiting: 0, level: 'NONE', throttles: 0 })
  })

  it('shows what was recorded of the queue and of a tenant, as many as are asked for', async () => {
    // A claim is what records.
    await server.mail.submit({ tenant: 'acme', jobs: Array.from({ length: 11 }, () => ({ type: 'SEND' })) })
    await server.mail.claim(1)
    await expect.poll(() => server.mail.congestion.history({ tenant: 'acme' }), { timeout: 10_000 }).toHaveLength(1)

    const ofQueue = await server.ask('GET', `${path}/congestion/history`)
    const ofTenant = await server.ask('GET', `${path}/tenants/acme/congestion/history?limit=1`)
    const nonsense = await server.ask('GET', `${path}/congestion/history?limit=0`)

    expect(ofQueue.body.history).toMatchObject([{ waiting: 10, activeTenants: 1, at: expect.any(Number) }])
    expect(ofTenant.body.history).toMatchObject([{ waiting: 10, throttles: 0, level: 'HIGH' }])
    expect(nonsense.status).toBe(400)
  })
})

it('starts the counts of a tenant over', async () => {
  await makeBacklog()

  const { status, body } = await server.ask('POST', `${path}/tenants/acme/congestion/reset`)

  expect([status, body]).toEqual([200, { done: true }])
  const after = await server.ask('GET', `${path}/tenants/acme/congestion`)
  expect(after.body).toMatchObject({ waiting: 10, throttles: 0, averageThrottlesPerJob: 0 })
  expect(after.body).not.toHaveProperty('lastBackoffMs')
})

it('is switched off for a queue while it runs: a pushed-back job waits for the shortest backoff', async () => {
  await makeBacklog()

  const change = { congestion: { enabled: false, baseBackoffMs: 700 } }
  expect((await server.ask('PATCH', path, change)).body).toMatchObject(change)

  expect((await server.ask('GET', `${path}/tenants/acme/congestion`)).body).toMatchObject({ backoffMs: 700 })
})
