import { mkdtemp, rm } from 'node:fs/promises'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { AuditEntry } from '../../src/http/index.ts'
import { bearer, keyOf, keys, useHttpServer } from './http-server.ts'

const server = useHttpServer()

describe('a server without keys', () => {
  it.each([
    ['names another host', { host: 'evil.example' }],
    ['names an address of this machine that others can reach', { host: '192.168.0.7:8080' }],
    ['comes from a page of somebody else', { host: 'localhost', origin: 'https://evil.example' }],
    ['comes from a page without an origin', { host: 'localhost', origin: 'null' }],
  ])('refuses a request that %s', async (_, headers) => {
    const response = await server.app.inject({ method: 'POST', url: '/v1/queues/mail/jobs/x/cancel', headers })

    expect([response.statusCode, response.json().type]).toEqual([403, 'urn:sluice:problem:forbidden'])
  })

  it.each([{ host: 'localhost:8080' }, { host: '127.0.0.1' }, { host: '[::1]:1', origin: 'http://localhost:3000' }])(
    'serves a request of this machine: %o',
    async (headers) => {
      const response = await server.app.inject({ url: '/v1/queues', headers })

      expect(response.statusCode).toBe(200)
    },
  )

  it('refuses a request from another machine, whatever that says of itself', async () => {
    const headers = { host: 'localhost', 'x-forwarded-for': '127.0.0.1' }

    const response = await server
      .create({ trustProxy: true })
      .inject({ url: '/v1/queues', headers, remoteAddress: '203.0.113.9' })

    expect(response.statusCode).toBe(403)
  })

  it('serves a socket in the file system', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const path = join(folder, 'http.sock')
    await server.app.listen({ path })

    const status = await new Promise((resolve, reject) => {
      const headers = { host: 'localhost' }
      get({ socketPath: path, path: '/v1/queues', headers, agent: false }, (response) => {
        response.resume()
        resolve(response.statusCode)
      }).on('error', reject)
    })

    expect(status).toBe(200)
  })

  it('listens on no host that other machines can reach', async () => {
    const { app } = server

    await expect(app.listen({ host: '0.0.0.0', port: 0 })).rejects.toThrow(/no API keys/)
    const told = await new Promise((resolve) => app.listen({ host: '::', port: 0 }, resolve))

    expect(told).toMatchObject({ code: 'SLUICE_INVALID_OPTIONS' })
    expect(app.server.listening).toBe(false)
  })
})

describe('a key', () => {
  it.each([
    ['is missing', {}, 'Bearer', 'Send an API key'],
    ['is wrong', { authorization: `Bearer slk_${'x'.repeat(43)}` }, 'Bearer error="invalid_token"', 'not known'],
    ['has expired', bearer('expired'), 'Bearer error="invalid_token"', 'expired'],
    ['has another form', { authorization: 'Bearer hunter2' }, 'Bearer error="invalid_token"', 'slk_'],
    ['comes by another scheme', { authorization: 'Basic YTpi' }, 'Bearer error="invalid_token"', 'Bearer'],
    ['is one of two', { authorization: `Bearer ${keyOf('admin')} x` }, 'Bearer error="invalid_token"', 'Bearer'],
  ])('that %s is refused', async (_, headers, challenge, detail) => {
    const response = await server.create({ keys }).inject({ url: '/v1/queues', headers })

    expect(response.statusCode).toBe(401)
    expect(response.headers['www-authenticate']).toBe(challenge)
    expect(response.json().detail).toContain(detail)
  })

  it('of a tenant submits for its own tenant, named or not, and for no other', async () => {
    server.create({ keys })
    const submit = (tenant?: string) =>
      server.ask('POST', '/v1/queues/mail/jobs', { type: 'SEND', ...(tenant ? { tenant } : {}) }, 'tenant')

    expect([(await submit()).status, (await submit('acme')).status, (await submit('rival')).status]).toEqual([
      201, 201, 403,
    ])
    expect((await server.mail.tenant('acme').view()).waiting).toBe(2)
    expect((await server.mail.tenant('default').view()).waiting).toBe(0)
  })

  it('of a tenant does not reach a job of another by its generated id, which names its place', async () => {
    server.create({ keys })
    const { id } = await server.mail.submit({ type: 'SEND', tenant: 'acme' })
    const place = `/v1/queues/mail/jobs/${encodeURIComponent(id)}`

    expect((await server.ask('GET', place, undefined, 'rival')).status).toBe(404)
    expect((await server.ask('POST', `${place}/cancel`, undefined, 'rival')).status).toBe(404)
    expect((await server.ask('GET', place, undefined, 'tenant')).body).toMatchObject({ id, state: 'waiting' })
    expect((await server.ask('POST', `${place}/cancel`, undefined, 'tenant')).body).toEqual({ state: 'canceled' })
  })

  it('of a tenant sees its own limits, and none of the queue’s', async () => {
    server.create({ keys })
    await server.mail.limits.change({ queue: '500/s', tenant: '50/s' })

    const { body } = await server.ask('GET', '/v1/queues/mail/limits', undefined, 'tenant')

    expect(body.limits).toMatchObject([{ scope: 'tenant', limit: 50 }])
    expect(body.limits[0]).not.toHaveProperty('activeTenants')
  })

  it('of a tenant is told why its work waits, and nothing of what it shares with others', async () => {
    server.create({ keys })
    await server.mail.limits.change({ queue: '1/h', tenant: '50/s', levels: { normal: '7/h' } })
    for (const tenant of ['rival', 'acme', 'acme']) await server.mail.submit({ type: 'SEND', tenant })
    await server.mail.claim(1)
    const { id } = await server.mail.submit({ type: 'SEND', tenant: 'acme' })
    const ofTenant = '/v1/queues/mail/tenants/acme/explain'
    const ofJob = `/v1/queues/mail/jobs/${encodeURIComponent(id)}/explain`

    for (const url of [ofTenant, ofJob]) {
      const { body } = await server.ask('GET', url, undefined, 'tenant')
      const whole = await server.ask('GET', url, undefined, 'viewer')
      const shared = body.gates.filter(({ gate, scope }: { gate: string; scope?: string }) =>
        gate === 'limit' ? scope !== 'tenant' : gate === 'turn' || gate === 'workers',
      )

      expect(shared.map(({ gate, open }: { gate: string; open: boolean }) => `${gate} ${open}`)).toContain(
        'limit false',
      )
      for (const gate of shared) {
        expect(Object.keys(gate).filter((field) => !['gate', 'open', 'until', 'text'].includes(field))).toEqual([])
        expect(gate.text).not.toMatch(/"queue"|bucket|processes|number \d|\d+ of \d+ in line/)
      }
      expect(body.gates).toContainEqual(expect.objectContaining({ gate: 'limit', scope: 'tenant', limit: 50 }))
      expect(body.gates.map(({ gate, open }: { gate: string; open: boolean }) => [gate, open])).toEqual(
        whole.body.gates.map(({ gate, open }: { gate: string; open: boolean }) => [gate, open]),
      )
      expect(whole.body.gates).toContainEqual(expect.objectContaining({ gate: 'limit', scope: 'queue', remaining: 0 }))
    }
    const { body } = await server.ask('GET', ofTenant, undefined, 'tenant')
    expect(body.text).toMatch(/^A limit of the queue grants nothing until /)
    expect(body.binds).toMatchObject({ gate: 'limit', until: expect.any(Number) })
  })

  it('of a tenant sees its own dead letters, and not how many there are in all', async () => {
    server.create({ keys })
    for (const tenant of ['acme', 'rival']) await server.mail.submit({ type: 'SEND', tenant, maxRetries: 0 })
    for (const job of await server.mail.claim(2)) await job.fail(new Error('no such mailbox'))

    const { body } = await server.ask('GET', '/v1/queues/mail/dead-letters', undefined, 'tenant')

    expect(body.letters.map(({ tenant }: { tenant: string }) => tenant)).toEqual(['acme'])
    expect(body).not.toHaveProperty('total')
  })

  it('of a tenant sees its own counts, and none of all', async () => {
    server.create({ keys })
    await server.mail.submit({ type: 'SEND', tenant: 'rival' })
    await server.mail.submit({ type: 'SEND', tenant: 'acme' })

    const { body } = await server.ask('GET', '/v1/queues/mail', undefined, 'tenant')

    expect(body.counts).toEqual({ waiting: 1, delayed: 0, running: 0 })
  })
})

describe('the rate limit of the API', () => {
  it('counts each key by itself, and says when to come again', async () => {
    const app = server.create({ keys, rateLimit: { max: 2, windowMs: 60_000 } })
    const ask = (headers: Record<string, string>) => app.inject({ url: '/v1/queues', headers })

    const statuses = []
    for (let i = 0; i < 3; i++) statuses.push((await ask(bearer('admin'))).statusCode)
    const refused = await ask(bearer('admin'))
    const other = await ask(bearer('viewer'))

    expect(statuses).toEqual([200, 200, 429])
    expect(refused.json()).toMatchObject({ type: 'urn:sluice:problem:too-many-requests', status: 429 })
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(50)
    expect(other.statusCode).toBe(200)
  })

  it('counts those without a key, or with a wrong one, by their address', async () => {
    const app = server.create({ keys, rateLimit: { max: 2, windowMs: 60_000 } })
    const statuses = []

    for (const key of ['a', 'b', 'c']) {
      const headers = { authorization: `Bearer slk_${key.repeat(43)}` }
      statuses.push((await app.inject({ url: '/v1/queues', headers })).statusCode)
    }

    expect(statuses).toEqual([401, 401, 429])
    expect((await app.inject({ url: '/healthz' })).statusCode).toBe(200)
  })
})

describe('the audit log', () => {
  it('has every change with who made it, to what, and how it ended, and no secret', async () => {
    const told: AuditEntry[] = []
    server.create({ keys, onChange: (entry) => told.push(entry) })
    const secret = `whsec_${'a'.repeat(32)}`
    await server.ask('PATCH', '/v1/queues/mail/tenants/acme', { weight: 3 }, 'operator')
    await server.ask(
      'POST',
      '/v1/queues/mail/actions',
      { type: 'SEND', jobs: [{ payload: 'private' }], webhook: { url: 'https://example.com/', secret } },
      'tenant',
    )

    const { body } = await server.ask('GET', '/v1/audit', undefined, 'admin')

    expect(body.entries).toMatchObject([
      { who: 'tenant', role: 'tenant', operation: 'submitAction', target: '/v1/queues/mail/actions', status: 202 },
      {
        who: 'operator',
        role: 'operator',
        operation: 'changeTenant',
        target: '/v1/queues/mail/tenants/acme',
        change: '{"weight":3}',
        status: 200,
      },
    ])
    expect(body.entries.map(({ id: _, ...entry }: { id: string }) => entry)).toEqual(told.reverse())
    expect(JSON.stringify(body)).not.toMatch(/whsec_a|private/)
  })

  it('has a change whatever onChange makes of it', async () => {
    server.create({
      onChange: () => {
        throw new Error('not now')
      },
    })

    const { status } = await server.ask('PATCH', '/v1/queues/mail/tenants/acme', { weight: 3 })

    expect(status).toBe(200)
    expect((await server.ask('GET', '/v1/audit')).body.entries).toMatchObject([{ operation: 'changeTenant' }])
  })

  it('has nothing of what was read or refused', async () => {
    server.create({ keys })
    await server.ask('GET', '/v1/queues/mail', undefined, 'viewer')
    await server.ask('PATCH', '/v1/queues/mail', { paused: true }, 'viewer')
    await server.ask('PATCH', '/v1/queues/mail', { paused: 1 }, 'admin')
    await server.ask('POST', '/v1/queues/mail/jobs/none/cancel', undefined, 'admin')

    expect((await server.ask('GET', '/v1/audit', undefined, 'admin')).body.entries).toEqual([])
  })

  it('is read page by page', async () => {
    for (const weight of [1, 2, 3]) await server.ask('PATCH', '/v1/queues/mail/tenants/acme', { weight })

    const first = await server.ask('GET', '/v1/audit?limit=2')
    const second = await server.ask('GET', `/v1/audit?limit=2&cursor=${first.body.cursor}`)

    const changes = [...first.body.entries, ...second.body.entries].map(({ change }) => change)
    expect(changes).toEqual(['{"weight":3}', '{"weight":2}', '{"weight":1}'])
  })
})

describe('the log', () => {
  it('has requests and changes, but no key, no query and no secret', async () => {
    const stream = new PassThrough()
    const app = server.create({ keys, log: { level: 'trace', stream } })
    const secret = `whsec_${'b'.repeat(32)}`

    await app.inject({
      method: 'POST',
      url: '/v1/queues/mail/actions?tenant=acme&webhookUrl=https%3A%2F%2Fexample.com%2F&hunter2=1',
      headers: { ...bearer('admin'), 'content-type': 'application/x-ndjson', 'sluice-webhook-secret': secret },
      payload: '{}',
    })
    await app.inject({
      method: 'POST',
      url: '/v1/queues/mail/actions',
      headers: bearer('admin'),
      payload: { tenant: 'acme', type: 'T', jobs: [], webhook: { url: 'https://example.com/', secret } },
    })
    await app.inject({ url: '/v1/queues?key=hunter2', headers: { authorization: `Bearer slk_${'z'.repeat(43)}` } })
    const text = String(stream.read())

    expect(text).toContain('"path":"/v1/queues/mail/actions"')
    expect(text).toContain('"operation":"submitAction"')
    expect(text).not.toMatch(/slk_|whsec_|hunter2/)
  })
})
