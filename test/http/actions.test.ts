import type { InjectOptions } from 'fastify'
import { describe, expect, it } from 'vitest'
import { createServer } from '../../src/http/index.ts'
import { bearer, keys, useHttpServer } from './http-server.ts'

const server = useHttpServer()

/** A body of NDJSON to the first server. */
async function upload(url: string, lines: readonly unknown[], options: Partial<InjectOptions> = {}) {
  const payload = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n')
  const response = await server.app.inject({
    method: 'POST',
    url,
    ...options,
    headers: { 'content-type': 'application/x-ndjson', ...options.headers },
    payload,
  })
  return { status: response.statusCode, body: response.json(), response }
}

function jobs(count: number, start = 0): { payload: number }[] {
  return Array.from({ length: count }, (_, index) => ({ payload: start + index }))
}

/** Runs all there is to run. */
function work(): void {
  server.mail.process('SEND', async (job) => {
    if (job.payload === 'bad') throw new Error('no such mailbox')
    return { got: job.payload }
  })
}

describe('an action as JSON', () => {
  const action = { tenant: 'acme', action: 'sale', type: 'SEND', jobs: [{ payload: 1 }, { id: 'x', payload: 2 }] }

  it('is accepted, found where the answer says, and listed', async () => {
    const { status, body, response } = await server.ask('POST', '/v1/queues/mail/actions', action)

    expect(status).toBe(202)
    expect(body).toMatchObject({
      id: 'mail:acme:sale',
      state: 'DISPATCHED',
      isSealed: true,
      accepted: 2,
      duplicates: 0,
      counts: { total: 2, waiting: 2 },
    })
    expect((await server.ask('GET', String(response.headers.location))).body).toMatchObject({ id: 'mail:acme:sale' })
    expect((await server.ask('GET', '/v1/queues/mail/actions')).body.actions).toMatchObject([{ name: 'sale' }])
    expect((await server.ask('GET', '/v1/queues/mail/actions?tenant=rival')).body.actions).toEqual([])
    expect((await server.ask('GET', '/v1/queues/mail/jobs/x?tenant=acme&action=sale')).body).toMatchObject({ id: 'x' })
  })

  it('runs, and its summary and results can be had', async () => {
    work()
    await server.ask('POST', '/v1/queues/mail/actions', {
      ...action,
      keepResults: true,
      jobs: [{ payload: 1 }, { payload: 'bad', maxRetries: 0 }],
    })
    await server.mail.action('sale', { tenant: 'acme' }).finished({ timeoutMs: 10_000 })

    const summary = await server.ask('GET', '/v1/actions/mail:acme:sale/summary')
    const results = await server.ask('GET', '/v1/actions/mail:acme:sale/results')

    expect(summary.body).toMatchObject({
      state: 'COMPLETED',
      counts: { succeeded: 1, failed: 1 },
      errors: [{ message: expect.stringContaining('no such mailbox'), count: 1 }],
    })
    expect(results.response.headers['content-type']).toContain('application/x-ndjson')
    const lines = results.response.body
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines).toMatchObject([{ state: 'succeeded', result: { got: 1 } }, { state: 'failed' }])
  })

  it('without results has none to show', async () => {
    await server.ask('POST', '/v1/queues/mail/actions', action)

    expect((await server.ask('GET', '/v1/actions/mail:acme:sale/results')).status).toBe(409)
  })

  it('stays open when it is not to be sealed, takes more, is sealed, and takes no more', async () => {
    await server.ask('POST', '/v1/queues/mail/actions', { ...action, seal: false })

    const more = await upload('/v1/actions/mail:acme:sale/jobs', jobs(3))
    const sealed = await server.ask('POST', '/v1/actions/mail:acme:sale/seal')
    const late = await upload('/v1/actions/mail:acme:sale/jobs', jobs(1))

    expect([more.status, more.body]).toMatchObject([202, { accepted: 3, isSealed: false, counts: { total: 5 } }])
    expect(sealed.body).toMatchObject({ isSealed: true, state: 'DISPATCHED' })
    expect([late.status, late.body.code]).toEqual([409, 'SLUICE_ACTION_CLOSED'])
  })

  it('is cancelled, and stays so', async () => {
    await server.ask('POST', '/v1/queues/mail/actions', action)

    const first = await server.ask('POST', '/v1/actions/mail:acme:sale/cancel')
    const second = await server.ask('POST', '/v1/actions/mail:acme:sale/cancel')

    expect(first.body).toMatchObject({ state: 'CANCELED', counts: { canceled: 2, waiting: 0 } })
    expect(second.body).toMatchObject({ state: 'CANCELED' })
  })

  it('runs what failed again as an action of its own', async () => {
    work()
    await server.ask('POST', '/v1/queues/mail/actions', { ...action, jobs: [{ payload: 'bad', maxRetries: 0 }] })
    await server.mail.action('sale', { tenant: 'acme' }).finished({ timeoutMs: 10_000 })

    const { status, body, response } = await server.ask('POST', '/v1/actions/mail:acme:sale/retry-failed')

    expect(status).toBe(202)
    expect(body).toMatchObject({ name: 'sale.retry-1', counts: { total: 1 } })
    expect(response.headers.location).toBe('/v1/actions/mail%3Aacme%3Asale.retry-1')
  })

  it('that nobody made is not found, whatever is asked of it', async () => {
    const asked = await Promise.all([
      server.ask('GET', '/v1/actions/mail:acme:none'),
      server.ask('GET', '/v1/actions/mail:acme:none/summary'),
      server.ask('GET', '/v1/actions/mail:acme:none/events'),
      server.ask('GET', '/v1/actions/mail:acme:none/results'),
      server.ask('POST', '/v1/actions/mail:acme:none/seal'),
      server.ask('POST', '/v1/actions/mail:acme:none/cancel'),
      server.ask('POST', '/v1/actions/mail:acme:none/retry-failed'),
      upload('/v1/actions/mail:acme:none/jobs', jobs(1)),
      server.ask('GET', '/v1/actions/none'),
      server.ask('GET', '/v1/actions/hidden:acme:sale'),
      server.ask('GET', '/v1/actions/mail:%25zz:sale'),
    ])

    expect(asked.map(({ status }) => status)).toEqual(asked.map(() => 404))
  })

  it('must name its tenant, and no option in the query', async () => {
    const { tenant: _, ...nobody } = action

    expect((await server.ask('POST', '/v1/queues/mail/actions', nobody)).body.errors).toMatchObject([
      { path: 'body.tenant' },
    ])
    expect((await server.ask('POST', '/v1/queues/mail/actions?type=SEND', action)).body.errors).toMatchObject([
      { path: 'query.type' },
    ])
  })

  it('names each job and field that cannot be', async () => {
    const { status, body } = await server.ask('POST', '/v1/queues/mail/actions', {
      ...action,
      jobs: [{ payload: 1 }, { delayMs: -1 }, { tenant: 'other' }],
      webhook: { url: 'https://example.com' },
    })

    expect(status).toBe(400)
    expect(body.errors.map(({ path }: { path: string }) => path)).toEqual([
      'body.jobs.1.delayMs',
      'body.jobs.2.tenant',
      'body.webhook.secret',
    ])
  })

  it('says what a field of a wrong type must be', async () => {
    const wrong = {
      ...action,
      jobs: [{ payload: 1, id: 7, delayMs: 'soon' }],
      keepResults: 'yes',
      webhook: { url: 'https://a.b' },
    }

    const { body } = await server.ask('POST', '/v1/queues/mail/actions', wrong)

    expect(body.errors).toEqual([
      { path: 'body.jobs.0.id', problem: 'must be text' },
      { path: 'body.jobs.0.delayMs', problem: 'must be a number' },
      { path: 'body.keepResults', problem: 'must be true or false' },
      { path: 'body.webhook.secret', problem: 'is missing; it must be text' },
    ])
  })
})

describe('an Idempotency-Key on JSON', () => {
  const ask = (body: object, key: string) =>
    server.app.inject({
      method: 'POST',
      url: '/v1/queues/mail/actions',
      headers: { 'idempotency-key': key },
      payload: body,
    })
  const action = { tenant: 'acme', type: 'SEND', jobs: [{ payload: 1 }, { payload: 2 }] }

  it('makes the action once, and answers a repeat as the first', async () => {
    const first = await ask(action, '"k-1"')
    const second = await ask({ jobs: action.jobs, type: 'SEND', tenant: 'acme' }, 'k-1')

    expect([first.statusCode, first.headers['idempotency-replayed']]).toEqual([202, undefined])
    expect([second.statusCode, second.headers['idempotency-replayed']]).toEqual([202, 'true'])
    expect(second.body).toBe(first.body)
    expect(second.headers.location).toBe(first.headers.location)
    expect((await server.mail.counts()).submitted).toBe(2)
  })

  it('is refused with another body', async () => {
    await ask(action, 'k-1')

    const { statusCode, body } = await ask({ ...action, jobs: [] }, 'k-1')

    expect([statusCode, JSON.parse(body).type]).toEqual([422, 'urn:sluice:problem:idempotency-mismatch'])
  })

  it('lets one of two requests at once through, and tells the other to wait or answers as the first', async () => {
    const answers = await Promise.all([ask(action, 'k-1'), ask(action, 'k-1'), ask(action, 'k-1')])

    expect(answers.filter(({ statusCode }) => statusCode === 202).length).toBeGreaterThanOrEqual(1)
    expect(answers.every(({ statusCode }) => statusCode === 202 || statusCode === 409)).toBe(true)
    expect((await server.mail.counts()).submitted).toBe(2)
  })

  it('can be used again when the request failed', async () => {
    const refused = await ask({ ...action, jobs: [{}], type: undefined }, 'k-1')
    const taken = await ask(action, 'k-1')

    expect([refused.statusCode, taken.statusCode]).toEqual([400, 202])
  })

  describe('does not take the action of another request for its own', () => {
    const submitAs = async (who: 'admin' | 'operator', body: object, key?: string) => {
      const response = await server.app.inject({
        method: 'POST',
        url: '/v1/queues/mail/actions',
        headers: { ...bearer(who), ...(key === undefined ? {} : { 'idempotency-key': key }) },
        payload: body,
      })
      return { status: response.statusCode, body: response.json(), replayed: response.headers['idempotency-replayed'] }
    }
    /** As after a day. */
    const forgetAnswers = async () => {
      const client = server.redis.client()
      const names = await client.keys(`${server.prefix}:{http}:idempotency:*`)
      if (names.length > 0) await client.del(names)
    }

    it('that another caller sent under the same key', async () => {
      server.create({ keys })

      const first = await submitAs('admin', action, 'k-1')
      const second = await submitAs('operator', action, 'k-1')

      expect([first.status, second.status, second.body.accepted]).toEqual([202, 202, 2])
      expect(second.body.id).not.toBe(first.body.id)
      expect((await server.mail.counts()).submitted).toBe(4)
    })

    it('that had another body, when its answer is forgotten', async () => {
      server.create({ keys })
      const first = await submitAs('admin', action, 'k-1')
      await forgetAnswers()

      const other = await submitAs('admin', { ...action, jobs: [{ payload: 3 }] }, 'k-1')
      const again = await submitAs('admin', { ...action, jobs: [{ payload: 3 }] }, 'k-1')

      expect([other.status, other.body.accepted]).toEqual([202, 1])
      expect(other.body.id).not.toBe(first.body.id)
      expect(again).toMatchObject({ status: 202, replayed: 'true', body: { id: other.body.id } })
      expect((await server.mail.counts()).submitted).toBe(3)
    })

    it('that was sealed under the name which it gives', async () => {
      server.create({ keys })
      const named = { ...action, action: 'sale' }
      await submitAs('admin', named)

      const conflict = await submitAs('admin', named, 'k-1')

      expect(conflict).toMatchObject({ status: 409, body: { code: 'SLUICE_ACTION_CLOSED' } })
      expect((await server.mail.counts()).submitted).toBe(2)
    })

    it('that is still open, of whose jobs it would leave out as many', async () => {
      server.create({ keys })
      const named = { ...action, action: 'sale', seal: false }
      await submitAs('admin', named, 'k-1')

      const conflict = await submitAs('admin', { ...named, jobs: [{ payload: 3 }] }, 'k-2')

      expect(conflict).toMatchObject({ status: 409, body: { code: 'SLUICE_ACTION_TAKEN' } })
      expect(await server.mail.action('sale', { tenant: 'acme' }).view()).toMatchObject({ received: 2 })
    })

    it('but its own, though its answer was lost', async () => {
      server.create({ keys })
      const named = { ...action, action: 'sale' }
      const first = await submitAs('admin', named, 'k-1')
      await forgetAnswers()

      const again = await submitAs('admin', named, 'k-1')

      expect(again).toMatchObject({ status: 202, replayed: 'true', body: { id: first.body.id, accepted: 0 } })
      expect((await server.mail.counts()).submitted).toBe(2)
    })
  })

  it('goes on with an action for which there was no room', async () => {
    const full = server.sluice.queue('full', { maxPending: 1_500 })
    const app = createServer({ sluice: server.sluice, queues: { full } })
    const jobs = Array.from({ length: 2_000 }, (_, payload) => ({ payload }))
    const submit = () =>
      app.inject({
        method: 'POST',
        url: '/v1/queues/full/actions',
        headers: { 'idempotency-key': 'k-1' },
        payload: { ...action, jobs },
      })

    const first = await submit()
    for (let left = 1_000; left > 0; ) {
      const claimed = await full.claim(left)
      await Promise.all(claimed.map((job) => job.succeed()))
      left -= claimed.length
    }
    const second = await submit()
    await app.close()

    expect([first.statusCode, first.headers['retry-after']]).toEqual([429, '5'])
    expect(first.json()).toMatchObject({ type: 'urn:sluice:problem:queue-full', accepted: 1_500 })
    expect([second.statusCode, second.json()]).toMatchObject([202, { accepted: 500, counts: { total: 2_000 } }])
  })

  it('is one caller’s own', async () => {
    const app = server.create({ keys })
    const both = await Promise.all(
      (['tenant', 'rival'] as const).map((who) =>
        app.inject({
          method: 'POST',
          url: '/v1/queues/mail/actions',
          headers: { ...bearer(who), 'idempotency-key': 'k-1' },
          payload: { type: 'SEND', jobs: [{}] },
        }),
      ),
    )

    expect(both.map(({ statusCode }) => statusCode)).toEqual([202, 202])
    expect(both.map((answer) => answer.json().tenant)).toEqual(['acme', 'rival'])
  })
})

describe('an action as NDJSON', () => {
  it('takes its options from the query', async () => {
    const { status, body } = await upload(
      '/v1/queues/mail/actions?tenant=acme&action=sale&type=SEND&level=high&keepResults=true&maxFailureRatio=0.25&seal=false',
      jobs(5),
    )

    expect(status).toBe(202)
    expect(body).toMatchObject({
      name: 'sale',
      level: 'high',
      type: 'SEND',
      keepResults: true,
      maxFailureRatio: 0.25,
      isSealed: false,
      accepted: 5,
    })
  })

  it('stops at a bad line, names it, and says what was accepted', async () => {
    const { status, body } = await upload('/v1/queues/mail/actions?tenant=acme&action=sale&type=SEND', [
      ...jobs(3),
      '{"payload":',
      ...jobs(3),
    ])

    expect(status).toBe(400)
    expect(body).toMatchObject({ line: 4, detail: 'Line 4 is not JSON.', action: 'mail:acme:sale', accepted: 3 })
    expect(await server.mail.action('sale', { tenant: 'acme' }).view()).toMatchObject({ isSealed: false, received: 3 })
  })

  it.each([
    ['a job without a type', {}, 'type is missing'],
    ['a job with a tenant of its own', { tenant: 'rival', type: 'SEND' }, 'tenant'],
    ['a job with a field nobody knows', { type: 'SEND', __proto__x: 1 }, 'unknown field'],
    ['a line that is no object', '[1]', 'must be an object'],
    ['a job whose key would change prototypes', '{"type":"SEND","__proto__":{"level":"high"}}', '__proto__'],
  ])('refuses %s', async (_, line, problem) => {
    const { status, body } = await upload('/v1/queues/mail/actions?tenant=acme', [line])

    expect(status).toBe(400)
    expect(body).toMatchObject({ line: 1, detail: expect.stringContaining(problem) })
  })

  it('goes on after the lines that were accepted when it is sent again under its key', async () => {
    const options = { headers: { 'idempotency-key': 'sale' } }
    const url = '/v1/queues/mail/actions?tenant=acme&type=SEND'
    const broken = await upload(url, [...jobs(700), '{'], options)

    const whole = await upload(url, jobs(1_000), options)
    const again = await upload(url, jobs(1_000), options)

    expect(broken.body).toMatchObject({ status: 400, accepted: 700 })
    expect(whole.body).toMatchObject({ name: 'sale', accepted: 300, isSealed: true, counts: { total: 1_000 } })
    expect(again.body).toMatchObject({ accepted: 0, counts: { total: 1_000 } })
    expect(again.response.headers['idempotency-replayed']).toBe('true')
  })

  it('has its key for a name, and no other beside it', async () => {
    const { body } = await upload('/v1/queues/mail/actions?tenant=acme&action=other', jobs(1), {
      headers: { 'idempotency-key': 'sale' },
    })

    expect(body.errors).toMatchObject([{ path: 'query.action' }])
  })

  it('keeps the secret of its webhook out of the path', async () => {
    const url = '/v1/queues/mail/actions?tenant=acme&webhookUrl=https%3A%2F%2Fexample.com%2Fhook'

    expect((await upload(url, [])).body.errors).toMatchObject([{ path: 'headers.sluice-webhook-secret' }])
    expect((await upload(url, [], { headers: { 'sluice-webhook-secret': `whsec_${'a'.repeat(32)}` } })).status).toBe(
      202,
    )
  })

  it('may have no line at all', async () => {
    expect((await upload('/v1/queues/mail/actions?tenant=acme', [])).body).toMatchObject({ counts: { total: 0 } })
  })
})
