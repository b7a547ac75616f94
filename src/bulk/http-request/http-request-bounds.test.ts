import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { pipeline, Readable } from 'node:stream'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import {
  contextWith,
  processor,
  rawUpstreamThat,
  resultOf,
  run,
  upstreamThat,
} from '../../../test/support/http-request-calls.ts'
import type { HttpRequestResult } from './result.ts'

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

    // Long enough to get there on a busy machine: a call that never arrives would try nothing.
    await expect(run(processor({ ...slow, timeoutMs: 500 }), { url: upstream.url('/') })).rejects.toMatchObject({
      code: 'SLUICE_UPSTREAM',
      message: `127.0.0.1:${upstream.port} did not answer within 500 ms (timeoutMs)`,
    })
    expect(hungUp).toBeDefined()
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
