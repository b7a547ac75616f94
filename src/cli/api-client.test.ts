import { once } from 'node:events'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { describe, expect, it, onTestFinished } from 'vitest'
import { all } from '../../test/support/all.ts'
import { ApiClient } from './api-client.ts'

/** A client of a server that answers like this, and loses patience soon. */
async function clientOf(answer: RequestListener): Promise<ApiClient> {
  const server = createServer(answer)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const api = new ApiClient({ url: `http://127.0.0.1:${port}`, key: undefined, silenceMs: 100 })
  onTestFinished(async () => {
    await api.close()
    server.closeAllConnections()
    await once(server.close(), 'close')
  })
  return api
}

const { signal } = new AbortController()
const stream = { 'content-type': 'text/event-stream' }

describe('a server that says nothing', () => {
  it('does not answer: a command that asks it ends with that', async () => {
    const api = await clientOf(() => {})

    await expect(api.get('/v1/queues')).rejects.toMatchObject({
      exit: 'unreachable',
      message: expect.stringMatching(/^no answer from http:\S+ \(it has said nothing for 100 ms\); start it/),
    })
  })

  it('is left in the middle of an answer, too', async () => {
    const api = await clientOf((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).write('{')
    })

    await expect(api.post('/v1/queues')).rejects.toMatchObject({ exit: 'unreachable' })
  })

  it('is left in the middle of a stream that no longer says that there is nothing new', async () => {
    const api = await clientOf((_, response) => {
      response.writeHead(200, stream).write('data: 1\n\n: nothing new\n\ndata: 2\n\n')
    })
    const seen: unknown[] = []

    const reading = (async () => {
      for await (const { data } of api.events('/events', { signal })) seen.push(data)
    })()

    await expect(reading).rejects.toMatchObject({ exit: 'unreachable' })
    expect(seen).toEqual([1, 2])
  })
})

describe('an upload', () => {
  it('waits longer than anything else: there may be no room for its jobs yet', async () => {
    let arrive = (_response: ServerResponse) => {}
    const arrived = new Promise<ServerResponse>((resolve) => {
      arrive = resolve
    })
    const api = await clientOf((request, response) => {
      if (request.method === 'POST') request.resume().on('end', () => arrive(response))
    })

    const uploading = api.upload('/v1/queues/web/actions', Readable.from([Buffer.from('{}\n')]))
    const response = await arrived
    await expect(api.get('/v1/queues')).rejects.toMatchObject({ exit: 'unreachable' })
    response.writeHead(202, { 'content-type': 'application/json' }).end('{"accepted":1}')

    expect(await uploading).toEqual({ accepted: 1 })
  })
})

describe('a server that is lost', () => {
  it.each([
    { what: 'an answer', type: 'application/json', read: (api: ApiClient) => api.get('/v1/queues') },
    { what: 'a download', type: 'application/x-ndjson', read: (api: ApiClient) => all(api.download('/results')) },
    { what: 'a stream', type: 'text/event-stream', read: (api: ApiClient) => all(api.events('/events', { signal })) },
  ])('in the middle of $what does not answer', async ({ type, read }) => {
    const api = await clientOf((_, response) => {
      response.writeHead(200, { 'content-type': type }).write('data: 1\n\n', () => response.destroy())
    })

    await expect(read(api)).rejects.toMatchObject({
      exit: 'unreachable',
      message: expect.stringMatching(/^no answer from http:\S+ \([^()]+\); start it with "sluice serve"/),
    })
  })
})

describe('a server of something else', () => {
  it.each([
    { asked: 'an answer', type: 'application/json', read: (api: ApiClient) => api.get('/v1/queues') },
    { asked: 'a download', type: 'application/x-ndjson', read: (api: ApiClient) => all(api.download('/results')) },
    { asked: 'a stream', type: 'text/event-stream', read: (api: ApiClient) => all(api.events('/events', { signal })) },
  ])('is told from ours when it is asked for $asked', async ({ type, read }) => {
    const api = await clientOf((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('<h1>Welcome</h1>')
    })

    await expect(read(api)).rejects.toMatchObject({
      exit: 'usage',
      message: expect.stringContaining(
        `answers with text/html where "sluice serve" answers with ${type}; name another`,
      ),
    })
  })
})

describe('the client', () => {
  it('ends what is under way when it is closed', async () => {
    let isAsked = () => {}
    const asked = new Promise<void>((resolve) => {
      isAsked = resolve
    })
    const api = await clientOf((_, response) => {
      response.writeHead(200, stream).write('data: 1\n\n', isAsked)
    })
    const reading = all(api.events('/events', { signal }))
    reading.catch(() => {})
    await asked

    await api.close()

    await expect(reading).rejects.toThrow()
  })

  it('refuses an address with a password, and does not repeat it', () => {
    const make = () => new ApiClient({ url: 'http://me:secret@127.0.0.1', key: undefined })

    expect(make).toThrow(/--url must hold no user name and no password/)
    expect(make).not.toThrow(/secret/)
  })
})
