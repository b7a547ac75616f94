import { afterEach, expect, it } from 'vitest'
import { contextWith } from '../../../test/support/http-request-calls.ts'
import { HttpUpstream } from '../../../test/support/http-upstream.ts'
import { NameServer } from '../../../test/support/name-server.ts'
import { httpRequest } from './http-request.ts'

/**
 * 127.0.0.2 stands for the public internet here: it is allowed explicitly, and 127.0.0.1, the inside, is not. A call to a
 * really public address would leave the machine.
 */
const outside = '127.0.0.2'
const inside = '127.0.0.1'

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

/** Two servers on one port: the one a name may lead to, and the one it must not. */
async function outsideAndInside(): Promise<{ good: HttpUpstream; secret: HttpUpstream }> {
  const good = await HttpUpstream.start(
    ({ url }, response) => {
      if (url === '/redirect') {
        response.statusCode = 302
        response.setHeader('location', `http://rebound.test:${good.port}/`)
      }
      response.setHeader('connection', 'close').end('good')
    },
    { host: outside },
  )
  const secret = await HttpUpstream.start((_, response) => response.end('secret'), { host: inside, port: good.port })
  ends.push(
    () => good.stop(),
    () => secret.stop(),
  )
  return { good, secret }
}

async function handlerAsking(nameServer: NameServer) {
  const handler = httpRequest({ allowHosts: ['*.test:*'], allowPrivate: [outside], resolve: nameServer.resolve })
  ends.push(
    () => nameServer.stop(),
    () => handler.close(),
  )
  const context = contextWith()
  return (url: string) => handler({ payload: { url } }, context)
}

it('connects to the address that was checked, whatever the name server would say next', async () => {
  const { good, secret } = await outsideAndInside()
  const nameServer = await NameServer.start([outside], [inside])
  const call = await handlerAsking(nameServer)

  expect(await call(`http://rebound.test:${good.port}/`)).toMatchObject({ body: 'good' })

  expect(nameServer.questions).toEqual(['rebound.test'])
  expect(secret.connections).toBe(0)
})

it('checks the address anew for each connection', async () => {
  const { good, secret } = await outsideAndInside()
  const call = await handlerAsking(await NameServer.start([outside], [inside]))
  await call(`http://rebound.test:${good.port}/`)

  expect(await call(`http://rebound.test:${good.port}/`)).toMatchObject({
    reason:
      'The host rebound.test has the address 127.0.0.1, which is not public (loopback, 127.0.0.0/8). Allow it with allowPrivate if that is meant.',
  })
  expect(secret.connections).toBe(0)
})

it('checks the address of a redirect to a name that has moved inside', async () => {
  const { good, secret } = await outsideAndInside()
  const nameServer = await NameServer.start([outside], [inside])
  const call = await handlerAsking(nameServer)

  expect(await call(`http://first.test:${good.port}/redirect`)).toMatchObject({
    reason: expect.stringContaining('rebound.test has the address 127.0.0.1'),
  })
  expect(nameServer.questions).toEqual(['first.test', 'rebound.test'])
  expect(secret.connections).toBe(0)
})

it.each([[[outside, inside]], [[inside, outside]]])(
  'refuses a name with %o, though one of them is allowed',
  async (addresses) => {
    const { good, secret } = await outsideAndInside()
    const call = await handlerAsking(await NameServer.start(addresses))

    expect(await call(`http://mixed.test:${good.port}/`)).toMatchObject({
      reason: expect.stringContaining('mixed.test has the address 127.0.0.1'),
    })
    expect(good.connections + secret.connections).toBe(0)
  },
)

it('tries the next address of a name when the first does not answer', async () => {
  const { good } = await outsideAndInside()
  const handler = httpRequest({
    allowHosts: ['*:*'],
    allowPrivate: ['127.0.0.0/8'],
    resolve: async () => ['127.0.0.3', outside],
  })
  ends.push(() => handler.close())
  const context = contextWith()

  expect(await handler({ payload: { url: `http://two.test:${good.port}/` } }, context)).toMatchObject({ body: 'good' })
})

it('fails for a name that the name server does not have', async () => {
  const call = await handlerAsking(await NameServer.start([]))

  await expect(call('http://nobody.test/')).rejects.toThrow('the call to nobody.test failed: ENODATA')
})
