import { spawn } from 'node:child_process'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { Action } from '../../src/engine/actions/action.ts'
import { events, postLines } from './clients.ts'
import { bearer, keys, useHttpServer } from './http-server.ts'

const server = useHttpServer({ maxPending: 20_000 })
const url = '/v1/queues/mail/actions?tenant=acme&type=SEND'

function* lines(count: number, made: { count: number } = { count: 0 }): Generator<string> {
  const text = 'x'.repeat(300)
  for (; made.count < count; made.count++) yield `{"payload":{"number":${made.count},"text":"${text}"}}`
}

/** Takes everything off the queue as fast as it comes. */
function drain(concurrency = 1_000): void {
  server.mail.process('SEND', () => undefined, { concurrency })
}

/** A server in a process of its own: where it listens, and how many bytes are alive in it. */
async function startProcess() {
  const file = new URL('server-process.ts', import.meta.url).pathname
  const flags = ['--expose-gc', '--import', 'tsx']
  const child = spawn(process.execPath, [...flags, file, server.redis.path, server.prefix], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = new Promise((resolve) => child.once('close', resolve))
  const said = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    origin: String((await said.next()).value),
    liveBytes: async () => {
      child.stdin.write('\n')
      return Number((await said.next()).value)
    },
    stop: () => {
      child.stdin.end()
      return ended
    },
  }
}

describe('an upload', () => {
  it('of 100,000 lines is taken whole and never held', async () => {
    const { origin, liveBytes, stop } = await startProcess()
    const before = await liveBytes()
    let most = 0
    async function* measured() {
      let count = 0
      for (const line of lines(100_000)) {
        if (++count % 20_000 === 0) most = Math.max(most, await liveBytes())
        yield line
      }
    }

    const response = await postLines(`${origin}${url}`, measured())
    await stop()

    expect(response.status).toBe(202)
    expect(await response.json()).toMatchObject({ accepted: 100_000, isSealed: true })
    // The body has 34 MB. What is held is a piece of it, and a chunk of jobs on its way to Redis.
    expect(most - before).toBeLessThan(15_000_000)
  })

  it('is read no faster than a full queue takes it, and goes on when there is room', async () => {
    const { url: origin } = await server.listen()
    const made = { count: 0 }
    const controller = new AbortController()
    const uploading = postLines(`${origin}${url}`, lines(1_000_000, made), {}, controller.signal)
    while ((await server.mail.counts()).waiting < 20_000) await pause(20)
    let last = -1

    // It has come to rest when nothing more was asked of the producer for a while.
    while (last !== made.count) {
      last = made.count
      await pause(500)
    }
    const { waiting } = await server.mail.counts()
    drain()
    while (made.count < last + 20_000) await pause(20)
    controller.abort()

    // The body has 340 MB. What is beyond the queue's bound stands in the buffers of the two sockets, which can be large.
    expect(waiting).toBe(20_000)
    expect(last).toBeLessThan(300_000)
    await expect(uploading).rejects.toThrow('abort')
  })

  it('is refused at its bad line while it is still being sent, and the connection survives', async () => {
    const { url: origin } = await server.listen()
    async function* spoiled() {
      yield* lines(2_000)
      yield '{"payload":'
      yield* lines(20_000)
    }

    const response = await postLines(`${origin}${url}&action=sale`, spoiled())

    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ line: 2_001, accepted: 2_000, action: 'mail:acme:sale' })
    expect((await fetch(`${origin}/healthz`)).status).toBe(200)
  })

  it('that waits for room ends when its sender has gone, also if the whole body is there', async () => {
    let told = (_status: number) => {}
    const answered = new Promise<number>((resolve) => {
      told = resolve
    })
    const { url: origin } = await server.listen({ onChange: ({ status }) => told(status) })
    const controller = new AbortController()
    const uploading = postLines(`${origin}${url}&action=sale`, lines(20_500), {}, controller.signal)
    while ((await server.mail.counts()).waiting < 20_000) await pause(20)

    controller.abort()

    await expect(uploading).rejects.toThrow('abort')
    expect(await answered).toBe(400)
    expect(await server.mail.action('sale', { tenant: 'acme' }).view()).toMatchObject({ received: 20_000 })
  })

  it('whose sender goes away leaves what was accepted, to go on with', async () => {
    const { app, port, url: origin } = await server.listen()
    const broken = new Promise<void>((resolve) => {
      app.server.once('request', (request) => request.once('close', resolve))
    })
    const head = `POST ${url} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nIdempotency-Key: sale\r\nTransfer-Encoding: chunked\r\n\r\n`
    const body = [...lines(100)].map((line) => `${line}\n`).join('')
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(`${head}${body.length.toString(16)}\r\n${body}\r\n`)
    })
    const action = server.mail.action('sale', { tenant: 'acme' })
    while ((await action.view())?.received !== 100) await pause(10)
    // Only now: what a sender that goes away at once has left in the socket may be read or not, as Node has it.
    socket.destroy()
    await broken

    const response = await postLines(`${origin}${url}`, lines(150), { 'idempotency-key': 'sale' })

    expect(await response.json()).toMatchObject({ accepted: 50, counts: { total: 150 }, isSealed: true })
  })
})

describe('results', () => {
  it('are read from the store no faster than they are taken', async () => {
    const { port, url: origin } = await server.listen()
    server.mail.process('SEND', () => 'r'.repeat(10_000), { concurrency: 100 })
    await postLines(`${origin}${url}&action=sale&keepResults=true`, lines(3_000))
    await server.mail.action('sale', { tenant: 'acme' }).finished({ timeoutMs: 30_000 })
    const admin = server.redis.client()
    const sent = async () => Number(/total_net_output_bytes:(\d+)/.exec(await admin.info('stats'))?.[1])
    const before = await sent()

    const socket = connect(port, '127.0.0.1')
    socket.write('GET /v1/actions/mail:acme:sale/results HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    socket.pause()
    let last = -1
    for (let now = await sent(); now - last > 100_000; now = await sent()) {
      last = now
      await pause(300)
    }
    const whilePaused = (await sent()) - before
    let text = ''
    for await (const piece of socket.setEncoding('utf8')) text += piece

    // There are 30 MB of them; what went out stands in the buffers of the two sockets.
    expect(whilePaused).toBeLessThan(20_000_000)
    expect(text.match(/"state":"succeeded"/g)).toHaveLength(3_000)
  })
})

describe('the events of an action', () => {
  it('tell its progress and then its end', async () => {
    const { url: origin } = await server.listen()
    await postLines(`${origin}${url}&action=sale`, lines(500))
    const seen: { event: string | undefined; id: string | undefined; data: Record<string, number | boolean> }[] = []

    for await (const { event, id, data } of events(`${origin}/v1/actions/mail:acme:sale/events`)) {
      if (seen.length === 0) drain(10)
      seen.push({ event, id, data: JSON.parse(data) })
    }

    expect(seen[0]).toMatchObject({ event: 'progress', id: '1', data: { total: 500, done: 0, isSealed: true } })
    expect(seen.at(-1)).toMatchObject({
      event: 'end',
      id: 'end',
      data: { state: 'COMPLETED', counts: { succeeded: 500 } },
    })
    const done = seen.slice(0, -1).map(({ data }) => Number(data.done))
    expect(done).toEqual(done.toSorted((a, b) => a - b))
  })

  it('are over for a browser that has seen the end, and comes again', async () => {
    const { url: origin } = await server.listen()
    await postLines(`${origin}${url}&action=sale`, lines(1))

    const response = await fetch(`${origin}/v1/actions/mail:acme:sale/events`, { headers: { 'last-event-id': 'end' } })

    expect(response.status).toBe(204)
  })

  it('say that nothing is new while nothing is', async () => {
    const { url: origin } = await server.listen({ heartbeatMs: 20 })
    await postLines(`${origin}${url}&action=sale`, lines(1))
    const comments: string[] = []

    for await (const { comment } of events(`${origin}/v1/actions/mail:acme:sale/events`)) {
      if (comment !== undefined) comments.push(comment)
      if (comments.length === 2) break
    }

    expect(comments).toEqual(['nothing new', 'nothing new'])
  })

  it('are open no more often than they may be', async () => {
    const { url: origin } = await server.listen({ maxStreams: 1 })
    await postLines(`${origin}${url}&action=sale`, lines(1))
    const place = `${origin}/v1/actions/mail:acme:sale/events`

    for await (const _ of events(place)) {
      const second = await fetch(place)
      expect([second.status, second.headers.get('retry-after')]).toEqual([429, '10'])
      break
    }
  })
})

describe('a client that goes away before its stream begins', () => {
  it('takes no place of those that may be open', async () => {
    const { app, port, url: origin } = await server.listen({ maxStreams: 1 })
    await postLines(`${origin}${url}&action=sale`, lines(1))
    const place = '/v1/actions/mail:acme:sale/events'
    const view = vi.spyOn(Action.prototype, 'view')
    const socket = connect(port, '127.0.0.1')
    const gone = new Promise<void>((resolve) => {
      view.mockImplementationOnce(async function (this: Action) {
        const closed = new Promise((close) => app.server.once('left', close))
        socket.destroy()
        await closed
        const found = await this.view()
        // Once the route has gone on with it.
        setImmediate(resolve)
        return found
      })
    })
    app.server.once('request', (_request, response) => response.once('close', () => app.server.emit('left')))

    socket.write(`GET ${place} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    await gone

    for await (const { event } of events(origin + place)) {
      expect(event).toBe('progress')
      break
    }
  })
})

describe('the events of a queue', () => {
  it('are told from a known one on', async () => {
    const { url: origin } = await server.listen()
    for (const name of ['one', 'two']) await postLines(`${origin}${url}&action=${name}`, lines(1))
    const place = `${origin}/v1/queues/mail/events`
    const take = async (count: number, from: string, headers = {}) => {
      const seen: { type: string; action: string; id: string }[] = []
      for await (const { data } of events(place + from, headers)) {
        seen.push(JSON.parse(data))
        if (seen.length === count) break
      }
      return seen
    }

    const all = await take(4, '?from=0')
    const rest = await take(2, '', { 'last-event-id': String(all[1]?.id) })

    expect(all.map(({ type, action }) => `${type} ${action}`)).toEqual([
      'action.created one',
      'action.dispatched one',
      'action.created two',
      'action.dispatched two',
    ])
    expect(rest).toEqual(all.slice(2))
  })

  it('are told to a tenant only if they are its own', async () => {
    const { url: origin } = await server.listen({ keys })
    const submit = (tenant: string) => server.mail.submit({ tenant, type: 'SEND', action: `of-${tenant}`, jobs: [] })
    await submit('rival')
    await server.mail.limits.change({ queue: '500/s' })
    await submit('acme')
    const seen: string[] = []

    for await (const { data } of events(`${origin}/v1/queues/mail/events?from=0`, bearer('tenant'))) {
      const { type, tenant } = JSON.parse(data)
      seen.push(`${type} ${tenant}`)
      if (type === 'action.completed') break
    }

    expect(seen[0]).toBe('action.created acme')
    expect(seen.every((each) => each.endsWith(' acme'))).toBe(true)
  })
})
