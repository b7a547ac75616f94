import { once } from 'node:events'
import type { RequestListener, ServerResponse } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { pipeline, Readable } from 'node:stream'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { certificate } from '../../../test/support/certificate.ts'
import { HttpUpstream } from '../../../test/support/http-upstream.ts'
import type { JobContext } from '../../engine/job-run.ts'
import { discard, throttled } from '../../engine/outcome.ts'
import { type HttpRequestHandler, httpRequest } from './http-request.ts'
import type { HttpRequestOptions } from './options.ts'
import type { HttpRequestPayload } from './payload.ts'
import type { HttpRequestResult } from './result.ts'

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function upstreamThat(answer: RequestListener, options?: Parameters<typeof HttpUpstream.start>[1]) {
  const upstream = await HttpUpstream.start(answer, options)
  ends.push(() => upstream.stop())
  return upstream
}

/** A server below HTTP, for answers that no HTTP server would give. */
async function rawUpstreamThat(answer: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    ends.push(() => socket.destroy())
    socket.on('error', () => {})
    socket.once('data', () => answer(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  ends.push(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

function processor(options: Partial<HttpRequestOptions> = {}): HttpRequestHandler {
  const handler = httpRequest({ allowHosts: ['*:*'], allowPrivate: ['127.0.0.1'], ...options })
  ends.push(() => handler.close())
  return handler
}

const contextWith = (more: Partial<JobContext> = {}): JobContext => ({
  signal: new AbortController().signal,
  fence: '1',
  admit: async () => {},
  ...more,
})

const run = (handler: HttpRequestHandler, payload: HttpRequestPayload, context = contextWith()) =>
  handler({ payload }, context)

async function resultOf(handler: HttpRequestHandler, payload: HttpRequestPayload): Promise<HttpRequestResult> {
  const result = await run(handler, payload)
  expect(result).toHaveProperty('status')
  return result as HttpRequestResult
}

const reasonOf = async (handler: HttpRequestHandler, payload: HttpRequestPayload): Promise<string> => {
  const outcome = await run(handler, payload)
  expect(outcome).toHaveProperty('reason')
  return (outcome as { reason: string }).reason
}

const json = (response: ServerResponse, value: unknown) =>
  response.setHeader('content-type', 'application/json').end(JSON.stringify(value))

describe('a call', () => {
  it('arrives as the payload says, and its answer is the result', async () => {
    const upstream = await upstreamThat((_, response) => {
      response.setHeader('etag', '"1"').setHeader('set-cookie', 'a=1')
      response.statusCode = 201
      json(response, { id: 17 })
    })

    const result = await resultOf(processor(), {
      method: 'POST',
      url: upstream.url('/users?page=2#top'),
      headers: { 'X-Trace': 't1' },
      body: { name: 'Ä' },
    })

    expect(upstream.arrivals).toEqual([
      {
        method: 'POST',
        path: '/users?page=2',
        body: '{"name":"Ä"}',
        headers: {
          host: `127.0.0.1:${upstream.port}`,
          connection: 'keep-alive',
          accept: '*/*',
          'accept-encoding': 'gzip, deflate, br',
          'user-agent': 'sluice',
          'content-type': 'application/json',
          'content-length': '13',
          'x-trace': 't1',
        },
      },
    ])
    expect(result).toEqual({
      status: 201,
      headers: { 'content-type': 'application/json', etag: '"1"', date: expect.any(String) },
      bodyType: 'json',
      body: { id: 17 },
      truncated: false,
      wireBytes: 9,
      decodedBytes: 9,
      durationMs: expect.any(Number),
      redirects: 0,
    })
  })

  it.each(['HEAD', 'DELETE', 'OPTIONS', 'PUT', 'PATCH'] as const)('can be a %s without a body', async (method) => {
    const upstream = await upstreamThat((_, response) => response.writeHead(204).end())

    expect(await resultOf(processor(), { method, url: upstream.url('/') })).toMatchObject({
      status: 204,
      bodyType: 'empty',
    })
    expect(upstream.arrivals).toMatchObject([{ method, body: '' }])
  })

  it('can be a HEAD whose answer announces an encoded body', async () => {
    const upstream = await upstreamThat((_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': '500' }).end()
    })

    expect(await resultOf(processor(), { method: 'HEAD', url: upstream.url('/') })).toMatchObject({
      bodyType: 'empty',
      wireBytes: 0,
    })
  })

  it('succeeds with a status that was expected, and with no other', async () => {
    const upstream = await upstreamThat((_, response) => response.writeHead(404).end('none'))
    const handler = processor()

    expect(await run(handler, { url: upstream.url('/'), expect: [200, 404] })).toMatchObject({ status: 404 })
    expect(await run(handler, { url: upstream.url('/'), expect: ['3xx'] })).toEqual(
      discard(`127.0.0.1:${upstream.port} answered 404, not 3xx; asking again would not change that.\nnone`),
    )
  })

  it('reuses its connection, and closes it with the processor', async () => {
    const upstream = await upstreamThat((_, response) => response.end('x'))
    const handler = processor()
    for (let call = 0; call < 3; call++) await resultOf(handler, { url: upstream.url('/') })
    expect(upstream.connections).toBe(1)

    handler.close()

    await expect(run(handler, { url: upstream.url('/') })).rejects.toMatchObject({ code: 'SLUICE_CLOSED' })
  })

  it('is admitted when its connection is open, just before it is sent', async () => {
    const upstream = await upstreamThat((_, response) => response.end())
    const seen: unknown[] = []

    await run(
      processor(),
      { url: upstream.url('/') },
      contextWith({
        admit: async () => {
          seen.push({ connections: upstream.connections, arrivals: upstream.arrivals.length })
        },
      }),
    )

    expect(seen).toEqual([{ connections: 1, arrivals: 0 }])
    expect(upstream.arrivals).toHaveLength(1)
  })

  it('is not sent when it is not admitted', async () => {
    const upstream = await upstreamThat((_, response) => response.end())
    const lost = new Error('lease lost')

    const context = contextWith({ admit: () => Promise.reject(lost) })

    await expect(run(processor(), { url: upstream.url('/') }, context)).rejects.toBe(lost)
    expect(upstream.arrivals).toEqual([])
  })

  it('is made over TLS to the host that the certificate names', async () => {
    const upstream = await upstreamThat((_, response) => response.end('safe'), { tls: certificate })
    const trusting = { resolve: async () => ['127.0.0.1'], ca: certificate.cert }

    const url = upstream.url('/', 'secure.test')

    expect(await resultOf(processor(trusting), { url })).toMatchObject({ body: 'safe' })
    await expect(run(processor({ ...trusting, ca: undefined as never }), { url })).rejects.toThrow('self-signed')
    await expect(run(processor(trusting), { url: upstream.url('/', 'other.test') })).rejects.toThrow(
      'ERR_TLS_CERT_ALTNAME_INVALID',
    )
  })

  it('with a payload that cannot be sent ends the job, by the name of the field', async () => {
    expect(await reasonOf(processor(), { url: 'gopher://x', headers: { Host: 'y' } })).toBe(
      'The payload cannot be sent: url must start with http:// or https://, not gopher:; headers["Host"] must not be given: the processor sets it.',
    )
  })
})

describe('an answer that was not expected', () => {
  let status = 0
  let headers: Record<string, string> = {}
  let upstream: HttpUpstream
  beforeEach(async () => {
    headers = {}
    upstream = await upstreamThat((_, response) => response.writeHead(status, headers).end('because'))
  })
  const answerOf = async (code: number, answerHeaders: Record<string, string> = {}) => {
    status = code
    headers = answerHeaders
    return run(processor({ maxResponseBytes: 0 }), { url: upstream.url('/') })
  }

  it('pushes the job back for as long as it says', async () => {
    const inTenSeconds = new Date(Date.now() + 10_000).toUTCString()

    expect(await answerOf(429, { 'retry-after': '7' })).toEqual(throttled({ retryAfterMs: 7_000 }))
    expect(await answerOf(503, { 'retry-after': '7' })).toEqual(throttled({ retryAfterMs: 7_000 }))
    expect(await answerOf(403, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '9' })).toEqual(
      throttled({ retryAfterMs: 9_000 }),
    )
    expect(await answerOf(429, { ratelimit: '"a";r=0;t=4' })).toEqual(throttled({ retryAfterMs: 4_000 }))
    expect(await answerOf(429)).toEqual(throttled())
    const { retryAfterMs } = (await answerOf(429, { 'retry-after': inTenSeconds })) as { retryAfterMs: number }
    expect(retryAfterMs).toBeGreaterThanOrEqual(8_000)
    expect(retryAfterMs).toBeLessThanOrEqual(11_000)
  })

  it.each([400, 401, 403, 404, 410, 422])('ends the job with %i and what the upstream said', async (code) => {
    expect(await answerOf(code)).toEqual(
      discard(`127.0.0.1:${upstream.port} answered ${code}, not 2xx; asking again would not change that.\nbecause`),
    )
  })

  it.each([408, 425, 500, 502, 503])('fails the job with %i, to be tried again', async (code) => {
    await expect(answerOf(code)).rejects.toMatchObject({ code: 'SLUICE_UPSTREAM', status: code })
  })
})

describe('hosts', () => {
  it('that are not allowed are refused before anything is resolved', async () => {
    const asked: string[] = []
    const handler = processor({
      allowHosts: ['api.test'],
      resolve: async (name) => {
        asked.push(name)
        return []
      },
    })

    expect(await reasonOf(handler, { url: 'http://other.test/' })).toBe(
      'The host other.test is not in allowHosts (api.test).',
    )
    expect(asked).toEqual([])
  })

  it.each(['http://127.0.0.1', 'http://0x7f.1', 'http://2130706433', 'http://127.1', 'http://[::ffff:127.0.0.1]'])(
    'that are a private address in disguise are refused: %s',
    async (origin) => {
      const upstream = await upstreamThat((_, response) => response.end('secret'))

      const reason = await reasonOf(processor({ allowPrivate: [] }), { url: `${origin}:${upstream.port}/` })

      expect(reason).toMatch(/^The address (127\.0\.0\.1|::ffff:7f00:1) is not public \((loopback|IPv4-mapped), /)
      expect(upstream.connections).toBe(0)
    },
  )

  it('that resolve to a private address are refused, also when the name is allowed', async () => {
    const upstream = await upstreamThat((_, response) => response.end('secret'))
    const handler = processor({ allowPrivate: [] })

    expect(await reasonOf(handler, { url: upstream.url('/', 'localhost') })).toMatch(
      /^The host localhost has the address (127\.0\.0\.1|::1), which is not public \(loopback, /,
    )
    expect(upstream.connections).toBe(0)
  })

  it('that cannot be found or reached fail the job, to be tried again', async () => {
    const upstream = await upstreamThat((_, response) => response.end())
    await upstream.stop()
    ends.pop()
    const noAddress = processor({ resolve: async () => [] })

    await expect(run(processor(), { url: upstream.url('/') })).rejects.toMatchObject({
      code: 'SLUICE_UPSTREAM',
      host: `127.0.0.1:${upstream.port}`,
      message: expect.stringContaining('failed: ECONNREFUSED'),
    })
    await expect(run(noAddress, { url: 'http://a.test' })).rejects.toThrow(
      'the call to a.test failed: the host a.test has no address',
    )
  })
})

describe('a redirect', () => {
  it('is followed, each step checked, admitted and counted', async () => {
    const upstream = await upstreamThat(({ url }, response) => {
      const step = Number(url?.slice(1))
      if (step < 3) response.writeHead(302, { location: `/${step + 1}` }).end('moved')
      else response.end('here')
    })
    let admitted = 0

    const result = await run(
      processor(),
      { url: upstream.url('/0'), headers: { authorization: 'Bearer 1' } },
      contextWith({
        admit: async () => {
          admitted += 1
        },
      }),
    )

    expect(result).toMatchObject({ body: 'here', redirects: 3 })
    expect(admitted).toBe(4)
    expect(upstream.connections).toBe(1)
    expect(upstream.arrivals.map(({ headers }) => headers.authorization)).toEqual(Array(4).fill('Bearer 1'))
  })

  it('to another origin leaves secrets behind', async () => {
    const other = await upstreamThat((_, response) => response.end('other'))
    const upstream = await upstreamThat((_, response) => {
      response.writeHead(307, { location: other.url('/x') }).end()
    })

    const headers = { authorization: 'Bearer 1', cookie: 'a=1', 'x-api-key': 'k', accept: 'text/plain' }
    const result = await resultOf(processor(), { method: 'POST', url: upstream.url('/'), headers, body: 'b' })

    expect(result).toMatchObject({ body: 'other', redirects: 1 })
    expect(other.arrivals).toMatchObject([{ method: 'POST', body: 'b', headers: { accept: 'text/plain' } }])
    expect(Object.keys(other.arrivals[0]?.headers ?? {})).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/authorization|cookie|x-api-key/)]),
    )
  })

  it('to a host that is not allowed ends the job', async () => {
    const upstream = await upstreamThat((_, response) => {
      response.writeHead(302, { location: 'http://evil.test/' }).end()
    })
    const handler = processor({ allowHosts: [`127.0.0.1:${upstream.port}`] })

    expect(await reasonOf(handler, { url: upstream.url('/') })).toBe(
      `The host evil.test is not in allowHosts (127.0.0.1:${upstream.port}).`,
    )
  })

  it.each(['http://169.254.169.254/latest/meta-data/', 'http://[::1]:80/', 'http://inside.test/'])(
    'to the private address of %s ends the job',
    async (location) => {
      const upstream = await upstreamThat((_, response) => response.writeHead(302, { location }).end())
      const handler = processor({ resolve: async () => ['10.0.0.7'] })

      expect(await reasonOf(handler, { url: upstream.url('/') })).toMatch(/is not public \(/)
    },
  )

  it('from https to http ends the job', async () => {
    const upstream = await upstreamThat(
      (_, response) => response.writeHead(302, { location: 'http://secure.test/' }).end(),
      { tls: certificate },
    )
    const handler = processor({ resolve: async () => ['127.0.0.1'], ca: certificate.cert })

    expect(await reasonOf(handler, { url: upstream.url('/', 'secure.test') })).toContain('redirects from https to http')
  })

  it('without end ends the job', async () => {
    const upstream = await upstreamThat((_, response) => response.writeHead(301, { location: '/' }).end())

    expect(await reasonOf(processor({ maxRedirects: 3 }), { url: upstream.url('/') })).toBe(
      `127.0.0.1:${upstream.port} redirects more than 3 times (maxRedirects).`,
    )
    expect(upstream.arrivals).toHaveLength(4)
  })

  it('is not followed when it is expected, or redirects are not wanted', async () => {
    const upstream = await upstreamThat((_, response) => response.writeHead(301, { location: '/x' }).end())

    expect(await resultOf(processor(), { url: upstream.url('/'), expect: ['3xx'] })).toMatchObject({
      status: 301,
      headers: { location: '/x' },
    })
    expect(await reasonOf(processor({ maxRedirects: 0 }), { url: upstream.url('/') })).toContain(
      'answered 301, not 2xx',
    )
    expect(upstream.arrivals).toHaveLength(2)
  })
})

describe('time', () => {
  const slow = { timeoutMs: 100 }

  it.each<[string, RequestListener]>([
    ['sends no headers', () => {}],
    ['sends headers and no body', (_, response) => response.writeHead(200).flushHeaders()],
    [
      'sends a byte now and then',
      (_, response) => {
        const timer = setInterval(() => response.write('x'), 10)
        response.on('close', () => clearInterval(timer))
      },
    ],
    [
      'sends compressed bytes now and then',
      (_, response) => {
        response.writeHead(200, { 'content-encoding': 'gzip' }).write(gzipSync('x').subarray(0, 12))
      },
    ],
  ])('is up for an upstream that %s', async (_, answer) => {
    let hungUp: Promise<unknown> | undefined
    const upstream = await upstreamThat((request, response) => {
      hungUp = once(response, 'close')
      return answer(request, response)
    })

    await expect(run(processor(slow), { url: upstream.url('/') })).rejects.toMatchObject({
      code: 'SLUICE_UPSTREAM',
      message: `127.0.0.1:${upstream.port} did not answer within 100 ms (timeoutMs)`,
    })
    await hungUp
  })

  it('is up for a name server that does not answer', async () => {
    const handler = processor({ ...slow, resolve: () => new Promise(() => {}) })

    await expect(run(handler, { url: 'http://a.test/' })).rejects.toThrow('a.test did not answer within 100 ms')
  })

  it('covers all redirects together', async () => {
    const upstream = await upstreamThat((_, response) => {
      setTimeout(() => response.writeHead(302, { location: '/' }).end(), 60)
    })

    await expect(run(processor({ ...slow, maxRedirects: 20 }), { url: upstream.url('/') })).rejects.toThrow(
      'did not answer within 100 ms',
    )
  })

  it('in which the limits make the call wait does not count', async () => {
    const upstream = await upstreamThat((_, response) => response.end('x'))
    const admit = () => new Promise<void>((resolve) => setTimeout(resolve, 1_200))

    const result = await run(processor({ timeoutMs: 1_000 }), { url: upstream.url('/') }, contextWith({ admit }))

    expect(result).toMatchObject({ status: 200 })
    expect((result as HttpRequestResult).durationMs).toBeLessThan(1_000)
  })

  it('ends with the job: its signal ends the call with its reason', async () => {
    const controller = new AbortController()
    const reason = new Error('the worker stops')
    const upstream = await upstreamThat(() => controller.abort(reason))
    const context = contextWith({ signal: controller.signal })

    await expect(run(processor(), { url: upstream.url('/') }, context)).rejects.toBe(reason)
    await expect(run(processor(), { url: upstream.url('/') }, context)).rejects.toBe(reason)
    expect(upstream.arrivals).toHaveLength(1)
  })
})

function* endless(): Generator<string> {
  for (;;) yield 'x'.repeat(100_000)
}

describe('size', () => {
  it('counts what came over the wire and what it was', async () => {
    const page = 'a'.repeat(20_000)
    const upstream = await upstreamThat((_, response) => {
      response.writeHead(200, { 'content-encoding': 'br', 'content-type': 'text/plain' }).end(brotliCompressSync(page))
    })

    expect(await resultOf(processor(), { url: upstream.url('/') })).toMatchObject({
      body: page,
      wireBytes: brotliCompressSync(page).length,
      decodedBytes: 20_000,
    })
  })

  it.each<[string, RequestListener]>([
    [
      'a body without end',
      (_, response) => {
        pipeline(Readable.from(endless()), response, () => {})
      },
    ],
    [
      'a small body that unpacks into a huge one',
      (_, response) => {
        response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(50_000_000, 'x')))
      },
    ],
  ])('is capped for %s, and the next call is not harmed', async (_, answer) => {
    const upstream = await upstreamThat((request, response) =>
      request.url === '/small' ? response.end('small') : answer(request, response),
    )
    const handler = processor({ maxResponseBytes: 1_000 })

    expect(await resultOf(handler, { url: upstream.url('/') })).toMatchObject({
      body: 'x'.repeat(1_000),
      bodyType: 'text',
      truncated: true,
      decodedBytes: 1_000,
    })
    expect(await resultOf(handler, { url: upstream.url('/small') })).toMatchObject({ body: 'small', truncated: false })
  })
})

describe('an upstream that breaks the rules', () => {
  it.each([
    ['promises more bytes than it sends', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort'],
    ['ends in the middle of a chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nshort'],
    ['sends no HTTP', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['sends nothing', ''],
    ['has a header that is none', 'HTTP/1.1 200 OK\r\nbad header\r\n\r\n'],
    ['has headers without end', `HTTP/1.1 200 OK\r\na: ${'x'.repeat(100_000)}\r\n\r\n`],
    ['says two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nshort'],
    ['changes the protocol', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'],
  ])('and %s fails the job, to be tried again', async (_, bytes) => {
    const url = await rawUpstreamThat((socket) => socket.end(bytes))

    await expect(run(processor(), { url })).rejects.toMatchObject({ code: 'SLUICE_UPSTREAM' })
  })

  it('and ends its gzip early fails the job, to be tried again', async () => {
    const upstream = await upstreamThat((_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('hello').subarray(0, -4))
    })

    await expect(run(processor(), { url: upstream.url('/') })).rejects.toThrow('unexpected end of file')
  })

  it('and sends more bytes than it promised has only those it promised', async () => {
    const url = await rawUpstreamThat((socket) =>
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nshortHTTP/1.1 200'),
    )
    const handler = processor()

    expect(await resultOf(handler, { url })).toMatchObject({ body: 'short' })
    expect(await resultOf(handler, { url })).toMatchObject({ body: 'short' })
  })

  it('and asks for a cookie to be kept does not get it back', async () => {
    const upstream = await upstreamThat((_, response) => response.setHeader('set-cookie', 'a=1').end())
    const handler = processor()

    await resultOf(handler, { url: upstream.url('/') })
    await resultOf(handler, { url: upstream.url('/') })

    expect(upstream.arrivals.map(({ headers }) => headers.cookie)).toEqual([undefined, undefined])
  })
})
