import { connect } from 'node:net'
import { describe, expect, it, vi } from 'vitest'
import { StoreUnavailableError } from '../../src/errors.ts'
import { storeOf } from '../../src/sluice.ts'
import { events, parseAnswer, postLines, rawExchange } from './clients.ts'
import { useHttpServer } from './http-server.ts'

const server = useHttpServer()
const url = '/v1/queues/mail/actions?tenant=acme&type=SEND&action=sale'
const head = `POST ${url} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n`

/** A grace that no test would live to see the end of: what needs it hangs. */
const ENDLESS_MS = 3_600_000

/** One piece of a chunked body. */
function chunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`
}

/** An upload that has sent one line and may send more. What the server says comes when the connection is closed. */
async function beginUpload(port: number) {
  const socket = connect(port, '127.0.0.1')
  let said = ''
  socket.setEncoding('utf8').on('data', (piece) => {
    said += piece
  })
  const closed = new Promise<string>((resolve) => socket.once('close', () => resolve(said)))
  socket.write(head + chunk('{"payload":1}\n'))
  const action = server.mail.action('sale', { tenant: 'acme' })
  // The action is opened when its first line has come.
  while (!(await action.view())) await new Promise((resolve) => setTimeout(resolve, 10))
  return { socket, closed }
}

describe('a server that closes', () => {
  it('ends streams of events at once', async () => {
    const { app, url: origin } = await server.listen({ closeGraceMs: ENDLESS_MS })
    await postLines(`${origin}${url}`, ['{}'])
    const seen: string[] = []

    for await (const { event } of events(`${origin}/v1/actions/mail:acme:sale/events`)) {
      seen.push(String(event))
      void app.close()
    }

    expect(seen).toEqual(['progress'])
  })

  it('lets an upload that ends within the grace end, and answers it', async () => {
    const { app, port } = await server.listen({ closeGraceMs: ENDLESS_MS })
    const { socket, closed } = await beginUpload(port)

    const closing = app.close()
    socket.write(`${chunk('{"payload":2}\n')}0\r\n\r\n`)
    await closing

    expect(await closed).toMatch(/^HTTP\/1\.1 202 /)
    expect(await server.mail.action('sale', { tenant: 'acme' }).view()).toMatchObject({ received: 2, isSealed: true })
  })

  it('breaks off an upload that does not, says so and what was accepted', async () => {
    const { app, port } = await server.listen({ closeGraceMs: 50 })
    const { closed } = await beginUpload(port)

    await app.close()

    const { status, body } = parseAnswer(await closed)
    expect([status, body.type, body.accepted]).toEqual([503, 'urn:sluice:problem:unavailable', 1])
    expect(await server.mail.action('sale', { tenant: 'acme' }).view()).toMatchObject({ isSealed: false })
  })

  it('does not wait for connections on which nobody has asked anything', async () => {
    const { app, port } = await server.listen({ closeGraceMs: ENDLESS_MS })
    const socket = connect(port, '127.0.0.1')
    await new Promise((resolve) => socket.once('connect', resolve))
    const closed = new Promise((resolve) => socket.once('close', resolve))

    await app.close()
    await closed
  })
})

describe('a client that is slow', () => {
  it('with its headers is told so and cut off', async () => {
    const { port } = await server.listen({ headersTimeoutMs: 50 })

    const { status, body } = parseAnswer(await rawExchange(port, 'GET /healthz HTTP/1.1\r\nHost: loc'))

    expect([status, body.type]).toEqual([408, 'urn:sluice:problem:request-timeout'])
  })

  it('with its JSON is told so and cut off', async () => {
    const { port } = await server.listen({ bodyTimeoutMs: 50 })
    const start =
      'POST /v1/queues/mail/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"ty'

    const { status, body } = parseAnswer(await rawExchange(port, start))

    expect([status, body.type]).toEqual([408, 'urn:sluice:problem:request-timeout'])
  })

  it('with its NDJSON is told so and what was accepted, and cut off', async () => {
    const { port } = await server.listen({ idleBodyMs: 200 })
    const { closed } = await beginUpload(port)

    const { status, body } = parseAnswer(await closed)
    expect([status, body.type, body.accepted]).toEqual([408, 'urn:sluice:problem:request-timeout', 1])
  })

  it('that speaks no HTTP, or too much of it, is told so', async () => {
    const { port } = await server.listen()

    const nonsense = parseAnswer(await rawExchange(port, 'EHLO there\r\n\r\n'))
    const tooMuch = parseAnswer(await rawExchange(port, `GET / HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`))

    expect([nonsense.status, nonsense.body.type]).toEqual([400, 'urn:sluice:problem:invalid-request'])
    expect([tooMuch.status, tooMuch.body.type]).toEqual([431, 'urn:sluice:problem:headers-too-large'])
  })
})

describe('a handler that takes too long', () => {
  it('is given up after its own time, however long a body might have taken', async () => {
    server.create({ handlerTimeoutMs: 50, bodyTimeoutMs: 3_600_000 })
    vi.spyOn(server.mail, 'runDelayed').mockReturnValue(new Promise(() => {}))

    const { status, body } = await server.ask('POST', '/v1/queues/mail/delayed/run', {})

    expect([status, body.type]).toEqual([503, 'urn:sluice:problem:unavailable'])
  })
})

describe('without Redis', () => {
  it('the server says so within its time, goes on, and is ready again with it', async () => {
    server.create({ handlerTimeoutMs: 300 })
    await server.ask('GET', '/v1/queues/mail')

    await server.redis.kill()
    const away = await Promise.all([
      server.ask('GET', '/v1/queues/mail'),
      server.ask('GET', '/v1/queues/mail/tenants'),
      server.ask('GET', '/metrics'),
      server.ask('GET', '/readyz'),
      server.ask('GET', '/v1/audit'),
    ])
    const alive = await server.ask('GET', '/healthz')
    await server.redis.restart()
    while ((await server.ask('GET', '/readyz')).status !== 200) await new Promise((resolve) => setTimeout(resolve, 20))

    for (const { status, body, response } of away) {
      expect([status, body.type]).toEqual([503, 'urn:sluice:problem:unavailable'])
      expect(Number(response.headers['retry-after'])).toBeGreaterThan(0)
      expect(JSON.stringify(body)).not.toMatch(/redis\.sock|ECONN|ENOENT/)
    }
    expect(alive.status).toBe(200)
    expect((await server.ask('GET', '/v1/queues/mail')).status).toBe(200)
  })

  it('the server is not ready when one of several nodes does not answer', async () => {
    const { redis } = storeOf(server.sluice)
    const away = new StoreUnavailableError({ reason: 'one of three is away', outcome: 'unknown' })
    vi.spyOn(redis, 'callEach').mockRejectedValue(away)

    expect((await server.ask('GET', '/readyz')).status).toBe(503)
  })
})
