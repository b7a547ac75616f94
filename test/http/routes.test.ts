import type { LightMyRequestResponse } from 'fastify'
import { describe, expect, it } from 'vitest'
import { useHttpServer } from './http-server.ts'

const server = useHttpServer({ limits: { queue: '500/s' } })

/** Where a page says that the next one is; '' on the last. */
function nextIn({ headers }: LightMyRequestResponse): string {
  return /^<([^>]*)>; rel="next"$/.exec(String(headers.link ?? ''))?.[1] ?? ''
}

describe('a queue', () => {
  it('is listed and shown with its counts, pauses and fairness', async () => {
    await server.mail.submit({ type: 'SEND', tenant: 'acme' })

    expect((await server.ask('GET', '/v1/queues')).body).toEqual({ queues: [{ name: 'mail' }, { name: 'other' }] })
    expect((await server.ask('GET', '/v1/queues/mail')).body).toMatchObject({
      name: 'mail',
      paused: false,
      levelsPaused: { high: false, normal: false, low: false },
      fairness: { quantum: 4, alpha: 0, maxProgressMs: 60_000, maxWaitMs: 60_000 },
      counts: { waiting: 1, running: 0, delayed: 0, submitted: 1, succeeded: 0 },
    })
  })

  it('is paused and resumed, whole or by level, and shares otherwise from then on', async () => {
    await server.mail.submit({ type: 'SEND' })

    const paused = await server.ask('PATCH', '/v1/queues/mail', { paused: true, levelsPaused: { low: true } })
    const whilePaused = await server.mail.claim(1)
    const resumed = await server.ask('PATCH', '/v1/queues/mail', { paused: false, fairness: { maxWaitMs: 5_000 } })

    expect(paused.body).toMatchObject({ paused: true, pausedSince: expect.any(Number), levelsPaused: { low: true } })
    expect(whilePaused).toEqual([])
    expect(resumed.body).toMatchObject({ paused: false, levelsPaused: { low: true }, fairness: { maxWaitMs: 5_000 } })
    expect(await server.mail.claim(1)).toHaveLength(1)
  })

  it('that the server was not given is not found', async () => {
    server.sluice.queue('hidden')

    expect(await server.ask('GET', '/v1/queues/hidden')).toMatchObject({
      status: 404,
      body: { type: 'urn:sluice:problem:not-found', status: 404, detail: expect.stringContaining('"hidden"') },
    })
  })
})

describe('a job', () => {
  it('is submitted once under its id, found where the answer says, and cancelled', async () => {
    const job = { type: 'SEND', tenant: 'acme', id: 'order-17', payload: { to: ['ä', {}] } }

    const first = await server.ask('POST', '/v1/queues/mail/jobs', job)
    const second = await server.ask('POST', '/v1/queues/mail/jobs', job)
    const location = String(first.response.headers.location)
    const found = await server.ask('GET', location)
    const canceled = await server.ask('POST', '/v1/queues/mail/jobs/order-17/cancel?tenant=acme')

    expect([first.status, first.body]).toEqual([201, { id: 'order-17', isNew: true }])
    expect([second.status, second.body]).toEqual([200, { id: 'order-17', isNew: false }])
    expect(found.body).toMatchObject({ id: 'order-17', tenant: 'acme', state: 'waiting', payload: { to: ['ä', {}] } })
    expect([canceled.status, canceled.body]).toEqual([200, { state: 'canceled' }])
    expect((await server.ask('GET', location)).body).toMatchObject({ state: 'canceled' })
  })

  it('with a generated id is found by it, whatever its tenant is called', async () => {
    const { body, response } = await server.ask('POST', '/v1/queues/mail/jobs', { type: 'SEND', tenant: 'a:b/c %ü?#' })

    const found = await server.ask('GET', String(response.headers.location))

    expect(found.body).toMatchObject({ id: body.id, tenant: 'a:b/c %ü?#', state: 'waiting' })
  })

  it('that is not known is not found', async () => {
    expect((await server.ask('GET', '/v1/queues/mail/jobs/none')).status).toBe(404)
    expect((await server.ask('POST', '/v1/queues/mail/jobs/none/cancel')).status).toBe(404)
  })

  it('that ended says so when it is cancelled', async () => {
    const { id } = await server.mail.submit({ type: 'SEND', id: 'order-17' })
    for (const job of await server.mail.claim(1)) await job.succeed()

    expect((await server.ask('POST', `/v1/queues/mail/jobs/${id}/cancel`)).body).toEqual({ state: 'ended' })
  })
})

describe('tenants', () => {
  it('are listed in pages, each once', async () => {
    const names = Array.from({ length: 25 }, (_, index) => `t:${index}`)
    for (const tenant of names) await server.mail.submit({ type: 'SEND', tenant })
    const seen: string[] = []
    let url = '/v1/queues/mail/tenants?limit=10'

    for (let pages = 0; url !== '' && pages < 10; pages++) {
      const { body, response } = await server.ask('GET', url)
      expect(body.tenants.length).toBeLessThanOrEqual(10)
      seen.push(...body.tenants.map(({ tenant }: { tenant: string }) => tenant))
      url = nextIn(response)
      expect(url === '').toBe(body.cursor === undefined)
    }

    expect(seen.sort()).toEqual(names.sort())
  })

  it('are changed in all respects at once, and shown so', async () => {
    await server.mail.submit({ type: 'SEND', tenant: 'acme' })
    const change = {
      weight: 3,
      basePriority: -1_000,
      level: 'high',
      paused: true,
      limits: { tenant: '50/s', own: '5/s' },
    }

    const changed = await server.ask('PATCH', '/v1/queues/mail/tenants/acme', change)
    const reset = await server.ask('PATCH', '/v1/queues/mail/tenants/acme', { level: null, limits: { own: null } })

    expect(changed.body).toMatchObject({ state: 'paused', weight: 3, basePriority: -1_000, levelOverride: 'high' })
    expect(changed.body.limits.map(({ name }: { name: string }) => name).sort()).toEqual(['own', 'tenant'])
    expect(reset.body).not.toHaveProperty('levelOverride')
    expect(reset.body.limits).toMatchObject([{ name: 'tenant', limit: 50 }])
  })

  it('keep all their settings when one of those given is wrong', async () => {
    const { status, body } = await server.ask('PATCH', '/v1/queues/mail/tenants/acme', {
      paused: true,
      weight: 3,
      limits: { own: 'fast' },
    })

    expect(status).toBe(400)
    expect(body.errors).toEqual([{ path: 'body.limits.own', problem: expect.stringContaining("'500/s'") }])
    expect(await server.mail.tenant('acme').view()).toMatchObject({ state: 'idle', weight: 1 })
  })

  it('that wait for a free slot have no instant until which they wait', async () => {
    await server.mail.limits.change({ tenant: { kind: 'concurrency', max: 1 } })
    for (let i = 0; i < 2; i++) await server.mail.submit({ type: 'SEND', tenant: 'acme' })
    await server.mail.claim(2)

    const { body } = await server.ask('GET', '/v1/queues/mail/tenants/acme')

    expect(body).toMatchObject({ state: 'parked', parkedBy: 'tenant', running: 1 })
    expect(body).not.toHaveProperty('parkedUntil')
  })
})

describe('limits', () => {
  it('are shown, changed, removed and reset', async () => {
    const names = (body: { limits: { scope: string; name: string; limit: number }[] }) =>
      body.limits.map(({ scope, name, limit }) => `${scope}/${name}:${limit}`)

    const before = await server.ask('GET', '/v1/queues/mail/limits')
    const changed = await server.ask('PATCH', '/v1/queues/mail/limits', {
      change: { queue: '100/s', levels: { low: '10/s' }, partner: { kind: 'concurrency', max: 3 } },
    })
    const removed = await server.ask('PATCH', '/v1/queues/mail/limits', {
      remove: [{ scope: 'low' }, { scope: 'queue', name: 'partner' }],
      reset: [{ scope: 'queue' }],
    })

    expect(names(before.body)).toEqual(['queue/queue:500'])
    expect(names(changed.body).sort()).toEqual(['low/low:10', 'queue/partner:3', 'queue/queue:100'])
    expect(names(removed.body)).toEqual(['queue/queue:500'])
  })

  it('that cannot be are refused with all that is wrong, and nothing is changed', async () => {
    const { status, body } = await server.ask('PATCH', '/v1/queues/mail/limits', {
      change: { queue: '10/s', tenant: 'x', levels: { urgent: '1/s' } },
      remove: [{ scope: 'queue' }],
    })

    expect(status).toBe(400)
    expect(body.errors.map(({ path }: { path: string }) => path)).toEqual([
      'body.change.tenant',
      'body.change.levels.urgent',
    ])
    expect((await server.mail.limits.status('queue'))?.limit).toBe(500)
  })
})

describe('dead letters', () => {
  async function bury(tenant: string, type: string, count: number): Promise<void> {
    for (let i = 0; i < count; i++) await server.mail.submit({ type, tenant, payload: i, maxRetries: 0 })
    for (let left = count; left > 0; ) {
      for (const job of await server.mail.claim(left)) {
        await job.fail(new Error('no such mailbox'))
        left -= 1
      }
    }
  }

  it('and their jobs name the action they came with, by which and by error they can be found', async () => {
    const jobs = [1, 2].map((payload) => ({ payload, maxRetries: 0 }))
    await server.mail.submit({ tenant: 'acme', action: 'sale', type: 'SEND', jobs })
    await bury('acme', 'SEND', 1)
    for (const job of await server.mail.claim(2)) await job.fail(new Error(`full: ${String(job.payload)}`))
    const find = async (query: string) =>
      (await server.ask('GET', `/v1/queues/mail/dead-letters?${query}`)).body.letters

    const [letter, ...others] = await find('action=sale')
    const job = await server.ask('GET', `/v1/queues/mail/jobs/${encodeURIComponent(letter.key)}`)

    expect(letter).toMatchObject({ action: 'sale', tenant: 'acme' })
    expect(others).toHaveLength(1)
    expect(job.body).toMatchObject({ action: 'sale', state: 'failed' })
    expect(await find('error=full')).toHaveLength(2)
    expect(await find('error=full%3A%202')).toHaveLength(1)
    expect(await find('error=mailbox')).toHaveLength(1)
    expect(await find('action=other')).toEqual([])
  })

  it('are listed newest first in pages, with their error', async () => {
    await bury('acme', 'SEND', 5)

    const first = await server.ask('GET', '/v1/queues/mail/dead-letters?limit=3')
    const second = await server.ask('GET', nextIn(first.response))

    expect(first.body).toMatchObject({ total: 5, looked: 3, cursor: expect.any(String) })
    expect(first.body.letters[0]).toMatchObject({
      tenant: 'acme',
      reason: 'failed',
      error: { message: 'no such mailbox' },
    })
    expect(second.body.letters).toHaveLength(2)
    expect(second.body).not.toHaveProperty('cursor')
    expect(second.response.headers).not.toHaveProperty('link')
  })

  it('are all listed though those of the page before were retried meanwhile', async () => {
    await bury('acme', 'SEND', 8)
    const path = '/v1/queues/mail/dead-letters'
    const shown: unknown[] = []

    for (let url: string | undefined = `${path}?limit=3&type=SEND`; url; ) {
      const { body } = await server.ask('GET', url)
      for (const { key, payload } of body.letters) {
        shown.push(payload)
        await server.ask('POST', `${path}/${encodeURIComponent(key)}/retry`)
      }
      url = body.cursor && `${path}?limit=3&type=SEND&cursor=${body.cursor}`
    }

    expect(shown).toEqual([7, 6, 5, 4, 3, 2, 1, 0])
  })

  it.each(['3', 'x', '-1.a', '1.%00', '1', `1.${'a'.repeat(9_000)}`])(
    'refuse a cursor that is none: %s',
    async (cursor) => {
      const { status, body } = await server.ask('GET', `/v1/queues/mail/dead-letters?cursor=${cursor}`)

      expect([status, body.errors?.[0].path]).toEqual([400, 'query.cursor'])
    },
  )

  it('begin where a made-up cursor says, if anywhere', async () => {
    await bury('acme', 'SEND', 2)
    const lengths = []
    for (const cursor of ['0.', '9999999999999999.', '9999999999999999._-', '1.AAAA']) {
      const { body } = await server.ask('GET', `/v1/queues/mail/dead-letters?cursor=${cursor}`)
      lengths.push(body.letters.length)
    }

    expect(lengths).toEqual([0, 2, 2, 0])
  })

  it('come in short pages where they are large', async () => {
    await bury('acme', 'SEND', 1)
    const payload = 'x'.repeat(200_000)
    await server.mail.submit({
      jobs: Array.from({ length: 8 }, () => ({ type: 'SEND', tenant: 'acme', payload, maxRetries: 0 })),
    })
    // A claim has its bound too.
    for (const _ of [1, 2]) for (const job of await server.mail.claim(8)) await job.fail(new Error('no'))
    const read = (query: string) => server.ask('GET', `/v1/queues/mail/dead-letters?limit=9&${query}`)

    const first = await read('type=SEND')
    const second = await read(`type=SEND&cursor=${first.body.cursor}`)

    expect([first.body.looked, first.body.letters.length]).toEqual([5, 5])
    expect([second.body.letters.length, second.body.cursor]).toEqual([4, undefined])
    expect((await read('')).body).toMatchObject({ letters: { length: 5 }, cursor: expect.any(String) })
  })

  it('are found by tenant, reason and type, and the page says how many it looked at', async () => {
    await bury('acme', 'SEND', 3)
    await bury('rival', 'PING', 2)
    const find = (query: string) => server.ask('GET', `/v1/queues/mail/dead-letters?${query}`)

    expect((await find('tenant=acme')).body).toMatchObject({ looked: 5, letters: { length: 3 } })
    expect((await find('type=PING&reason=failed')).body).toMatchObject({ letters: { length: 2 } })
    expect((await find('reason=stalled')).body).toMatchObject({ looked: 5, letters: [] })
    expect((await find('tenant=acme&limit=1')).body).toMatchObject({
      letters: { length: 1 },
      looked: 3,
      cursor: expect.any(String),
    })
  })

  it('are retried or discarded, each once', async () => {
    await bury('a:b', 'SEND', 2)
    const { body } = await server.ask('GET', '/v1/queues/mail/dead-letters')
    const [retried, discarded] = body.letters.map(
      ({ key }: { key: string }) => `/v1/queues/mail/dead-letters/${encodeURIComponent(key)}`,
    )

    expect((await server.ask('POST', `${retried}/retry`)).body).toEqual({ done: true })
    expect((await server.ask('POST', `${retried}/retry`)).status).toBe(404)
    expect((await server.ask('DELETE', discarded)).body).toEqual({ done: true })
    expect((await server.ask('DELETE', discarded)).status).toBe(404)
    expect(await server.mail.counts()).toMatchObject({ deadLettersRetried: 1, deadLettersDiscarded: 1 })
  })
})

describe('health', () => {
  it('is answered, and readiness while Redis answers', async () => {
    expect((await server.ask('GET', '/healthz')).body).toEqual({ status: 'ok' })
    expect((await server.ask('GET', '/readyz')).body).toEqual({ status: 'ready' })
  })

  it('shows the figures of the queues to Prometheus', async () => {
    await server.mail.submit({ type: 'SEND', tenant: 'acme' })

    const { body, response } = await server.ask('GET', '/metrics')

    expect(response.headers['content-type']).toContain('text/plain')
    expect(body).toContain('sluice_jobs{queue="mail",state="waiting"} 1')
    expect(body).toContain('sluice_jobs_submitted_total{queue="mail"} 1')
    expect(body).toContain('sluice_jobs_submitted_total{queue="other"} 0')
    expect(body).toContain('sluice_limit_rate_per_second{queue="mail",scope="queue",limit="queue"} 472.38')
  })
})
