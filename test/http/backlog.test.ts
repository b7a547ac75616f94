import { describe, expect, it, vi } from 'vitest'
import { definedOnly } from '../../src/defined-only.ts'
import type { AuditOptions, RunDelayedOptions } from '../../src/index.ts'
import { useHttpServer } from './http-server.ts'

const server = useHttpServer()

async function bury(count: number): Promise<void> {
  await server.mail.submit({
    jobs: Array.from({ length: count }, (_, payload) => ({ type: 'SEND', tenant: 'acme', payload, maxRetries: 0 })),
  })
  for (const job of await server.mail.claim(count)) await job.fail(new Error(`no mailbox ${String(job.payload)}`))
}

/** Resolves only when it is told to end. */
function untilAborted<T>(signal: AbortSignal | undefined, answer: T): Promise<T> {
  return new Promise((resolve) => signal?.addEventListener('abort', () => resolve(answer)))
}

describe('work over a whole queue', () => {
  it('ends within the time of its handler, and says where to go on', async () => {
    server.create({ handlerTimeoutMs: 400 })
    vi.spyOn(server.mail, 'runDelayed').mockImplementation((_filter, options?: RunDelayedOptions) =>
      untilAborted(options?.signal, { looked: 200, due: 3, cursor: '17' }),
    )
    vi.spyOn(server.mail, 'audit').mockImplementation((options?: AuditOptions) =>
      untilAborted(options?.signal, { tenants: 3, differences: [], counts: {}, skipped: [], cursor: 'keys.17' }),
    )

    const delayed = await server.ask('POST', '/v1/queues/mail/delayed/run', {})
    const audit = await server.ask('POST', '/v1/queues/mail/audit', {})

    expect([delayed.status, delayed.body]).toEqual([200, { looked: 200, due: 3, cursor: '17' }])
    expect([audit.status, audit.body]).toMatchObject([200, { tenants: 3, cursor: 'keys.17' }])
  })

  it('of dead letters at a rate ends within the time of its handler', async () => {
    server.create({ handlerTimeoutMs: 400 })
    await bury(3)

    const { status, body } = await server.ask('POST', '/v1/queues/mail/dead-letters/discard', {
      filter: { all: true },
      rate: '1/h',
    })

    expect([status, body]).toMatchObject([200, { taken: 1, cursor: expect.any(String) }])
  })

  it('of dead letters at a rate keeps to it over all requests, and ends none of them for want of time', async () => {
    server.create({ handlerTimeoutMs: 400 })
    await bury(3)
    const path = '/v1/queues/mail/dead-letters/discard'

    const answers = []
    for (let cursor: string | undefined, at = 0; at < 3; at++) {
      const { body } = await server.ask('POST', path, definedOnly({ filter: { all: true }, rate: '1/h', cursor }))
      answers.push(body)
      cursor = body.cursor
    }

    expect(answers.map(({ taken }) => taken)).toEqual([1, 0, 0])
    expect(answers.map(({ cursor }) => cursor)).toEqual([1, 2, 3].map(() => expect.any(String)))
  })

  it('goes on from a cursor, and refuses one that is none', async () => {
    await server.mail.submit({ type: 'SEND', tenant: 'acme', delayMs: 60_000 })

    const delayed = await server.ask('POST', '/v1/queues/mail/delayed/run', { cursor: '0' })
    const audit = await server.ask('POST', '/v1/queues/mail/audit', { repair: false, cursor: 'waiting.0' })
    const refused = await Promise.all([
      server.ask('POST', '/v1/queues/mail/delayed/run', { cursor: 'x' }),
      server.ask('POST', '/v1/queues/mail/audit', { cursor: 'nowhere.0' }),
    ])

    expect(delayed.body).toEqual({ looked: 1, due: 1 })
    expect([audit.status, audit.body.tenants]).toEqual([200, 0])
    expect(refused.map(({ status, body }) => [status, body.errors[0].path])).toEqual([
      [400, 'body.cursor'],
      [400, 'body.cursor'],
    ])
  })
})

it('refuses cursors and ids that are too large for Redis, and says which field it is', async () => {
  const large = '99999999999999999999'
  const walked = ['leases', 'delayed', 'aside', 'dead', 'letters', 'keys']

  const answers = await Promise.all([
    ...walked.map((part) => server.ask('POST', '/v1/queues/mail/audit', { cursor: `${part}.${large}` })),
    server.ask('POST', '/v1/queues/mail/delayed/run', { cursor: large }),
    server.ask('GET', `/v1/queues/mail/tenants?cursor=0.${large}.0`),
    server.ask('GET', `/v1/audit?cursor=${large}-${large}`),
    server.ask('GET', '/v1/audit?cursor=0-0'),
    server.ask('GET', `/v1/queues/mail/events?follow=false&from=${large}`),
  ])

  expect(answers.map(({ status, body }) => [status, body.errors?.[0].path])).toEqual([
    ...walked.map(() => [400, 'body.cursor']),
    [400, 'body.cursor'],
    [400, 'query.cursor'],
    [400, 'query.cursor'],
    [400, 'query.cursor'],
    [400, 'query.from'],
  ])
})

it('takes cursors and ids as large as Redis has them', async () => {
  const largest = '18446744073709551615'

  const answers = await Promise.all([
    server.ask('POST', '/v1/queues/mail/audit', { cursor: `leases.${largest}` }),
    server.ask('POST', '/v1/queues/mail/delayed/run', { cursor: largest }),
    server.ask('GET', `/v1/queues/mail/tenants?cursor=0.${largest}.0`),
    server.ask('GET', `/v1/audit?cursor=${largest}-${largest}`),
    server.ask('GET', '/v1/audit?cursor=0-1'),
  ])

  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
})

describe('a dry run over dead letters', () => {
  const path = '/v1/queues/mail/dead-letters/discard'

  it('says how many it looked at, keeps to the limit, and goes on from its cursor', async () => {
    await bury(5)
    const ask = (more: object) =>
      server.ask('POST', path, { filter: { tenant: 'acme', error: 'mailbox' }, dryRun: true, ...more })

    const all = await ask({})
    const some = await ask({ limit: 2 })
    const rest = await ask({ cursor: some.body.cursor })

    expect(all.body).toEqual({ looked: 5, taken: 5, left: 5 })
    expect(some.body).toMatchObject({ taken: 2, cursor: expect.any(String) })
    expect(rest.body).toMatchObject({ taken: 3, left: 5 })
  })

  it('refuses what the real one refuses', async () => {
    const refused = await Promise.all(
      [{ cursor: 'x' }, { rate: 'fast' }, { limit: 0 }].map((wrong) =>
        server.ask('POST', path, { filter: { all: true }, dryRun: true, ...wrong }),
      ),
    )

    expect(refused.map(({ status }) => status)).toEqual([400, 400, 400])
  })
})
