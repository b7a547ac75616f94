import { once } from 'node:events'
import type { Socket } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { HttpUpstream } from '../../../test/support/http-upstream.ts'
import { AllowedAddresses } from './allowed-addresses.ts'
import { type Connection, Connections } from './connections.ts'
import { Dialer } from './dialer.ts'

/** Remembers the sockets, so that a test can end them as the network does. */
class WatchedDialer extends Dialer {
  readonly sockets: Socket[] = []

  override async dial(url: URL, signal: AbortSignal): Promise<Socket> {
    const socket = await super.dial(url, signal)
    this.sockets.push(socket)
    return socket
  }
}

let upstream: HttpUpstream
let dialer: WatchedDialer
let connections: Connections
let url: URL

beforeEach(async () => {
  upstream = await HttpUpstream.start((_, response) => response.end('x'))
  url = new URL(upstream.url('/'))
  dialer = new WatchedDialer({
    addresses: new AllowedAddresses(['127.0.0.1']),
    resolve: () => Promise.reject(new Error('an address needs no name server')),
    ca: undefined,
  })
  connections = new Connections({ dialer, maxPerOrigin: 2 })
})
afterEach(async () => {
  connections.close()
  await upstream.stop()
})

const never = new AbortController().signal
const take = (signal = never, at = url): Promise<Connection> => connections.take(at, signal, (dial) => dial(signal))

async function call(connection: Connection): Promise<void> {
  const { body } = await connection.client.request({ method: 'GET', path: '/' })
  await body.text()
}

it('lets the third call wait for one of two connections, and hands it over', async () => {
  const [first, second] = [await take(), await take()]
  const third = take()
  await call(first)

  first.giveBack()

  expect(await third).toBe(first)
  expect(upstream.connections).toBe(2)
  second.drop()
  ;(await third).drop()
})

it('lets whoever has waited longest go first', async () => {
  const held = [await take(), await take()]
  const order: string[] = []
  const waiting = ['a', 'b'].map(async (name) => {
    const connection = await take()
    order.push(name)
    connection.drop()
  })

  held[0]?.drop()
  await Promise.all(waiting)

  expect(order).toEqual(['a', 'b'])
  held[1]?.drop()
})

it('does not let one origin wait for another', async () => {
  const other = await HttpUpstream.start((_, response) => response.end())
  const held = [await take(), await take(), await take(never, new URL(other.url('/')))]

  expect(held).toHaveLength(3)
  for (const connection of held) connection.drop()
  await other.stop()
})

it('forgets a call that is aborted while it waits', async () => {
  const held = [await take(), await take()]
  const controller = new AbortController()
  const aborted = take(controller.signal)
  const next = take()

  controller.abort(new Error('canceled'))

  await expect(aborted).rejects.toThrow('canceled')
  held[0]?.drop()
  ;(await next).drop()
  held[1]?.drop()
})

it('gives its place to the next when connecting fails', async () => {
  const held = await take()
  const failing = connections.take(url, never, () => Promise.reject(new Error('refused')))
  await expect(failing).rejects.toThrow('refused')

  ;(await take()).drop()
  held.drop()
})

it('does not hand out a kept connection that the upstream has closed', async () => {
  const first = await take()
  await call(first)
  first.giveBack()
  const disconnected = once(first.client, 'disconnect')
  dialer.sockets[0]?.destroy()
  await disconnected

  const second = await take()

  expect(second).not.toBe(first)
  await call(second)
  second.drop()
})

it.each(['before', 'after'])(
  'keeps no connection that ends with its answer, told so %s it is given back, and dials before the next call',
  async (when) => {
    await upstream.stop()
    upstream = await HttpUpstream.start((_, response) => response.setHeader('connection', 'close').end('x'))
    url = new URL(upstream.url('/'))
    const first = await take()
    const disconnected = once(first.client, 'disconnect')
    await call(first)
    if (when === 'before') await disconnected
    first.giveBack()

    const second = await take()

    expect(second).not.toBe(first)
    expect(dialer.sockets).toHaveLength(2)
    await call(second)
    expect(dialer.sockets).toHaveLength(2)
    second.drop()
  },
)

it('opens a connection again that was lost before its call was sent', async () => {
  const connection = await take()
  dialer.sockets[0]?.destroy()

  await call(connection)

  expect(upstream.connections).toBe(2)
  connection.drop()
})

it('closes connections that were never used, were used, and are given back after the end', async () => {
  connections = new Connections({ dialer, maxPerOrigin: 3 })
  const [unused, used, late] = [await take(), await take(), await take()]
  await call(used)
  await call(late)
  const closed = dialer.sockets.map((socket) => new Promise((resolve) => socket.once('close', resolve)))

  unused.drop()
  used.giveBack()
  connections.close()
  late.giveBack()

  await Promise.all(closed)
  await expect(take()).rejects.toMatchObject({ code: 'SLUICE_CLOSED' })
})
