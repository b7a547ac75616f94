import { describe, expect, it } from 'vitest'
import { certificate } from '../../../test/support/certificate.ts'
import {
  contextWith,
  processor,
  reasonOf,
  resultOf,
  run,
  upstreamThat,
} from '../../../test/support/http-request-calls.ts'
import { HttpUpstream } from '../../../test/support/http-upstream.ts'

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
    const upstream = await HttpUpstream.start((_, response) => response.end())
    await upstream.stop()
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
