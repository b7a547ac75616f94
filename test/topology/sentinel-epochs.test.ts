import { createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { Sentinels } from '../../src/store/sentinel.ts'
import { RequestReader } from '../support/resp-requests.ts'
import { until } from '../support/until.ts'

/** As much of a sentinel as is asked: it names whom it is told to. */
class FakeSentinel {
  master = { port: 1, epoch: 0 }
  /** A channel that nobody may hear. */
  refused = ''
  readonly #sockets = new Set<Socket>()
  readonly #listening = new Set<Socket>()
  readonly #server: Server

  constructor() {
    this.#server = createServer((socket) => {
      const reader = new RequestReader()
      this.#sockets.add(socket)
      socket.on('error', () => {})
      socket.on('data', (chunk) => {
        for (const { bytes } of reader.push(chunk)) socket.write(this.#answer(bytes.toString(), socket))
      })
    })
  }

  async start(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return (this.#server.address() as { port: number }).port
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  /** To all who listen, once somebody does. */
  async publish(channel: string, text: string): Promise<void> {
    await until(async () => this.#listening.size > 0, { what: 'somebody listens' })
    for (const socket of this.#listening) socket.write(bulks('message', channel, text))
  }

  #answer(request: string, socket: Socket): string {
    if (request.includes('GET-MASTER-ADDR-BY-NAME')) return bulks('127.0.0.1', String(this.master.port))
    if (request.includes('SENTINEL')) return bulks('config-epoch', String(this.master.epoch))
    if (request.toUpperCase().includes('SUBSCRIBE')) {
      const channels: string[] = request.match(/^\+\S+$/gm) ?? []
      if (channels.includes(this.refused)) return '-NOPERM No permissions to access a channel\r\n'
      this.#listening.add(socket)
      return channels
        .map((name, at) => `*3\r\n$9\r\nsubscribe\r\n$${name.length}\r\n${name}\r\n:${at + 1}\r\n`)
        .join('')
    }
    return '+OK\r\n'
  }
}

function bulks(...texts: string[]): string {
  return `*${texts.length}\r\n${texts.map((text) => `$${text.length}\r\n${text}\r\n`).join('')}`
}

let fakes: FakeSentinel[]
let sentinels: Sentinels

beforeEach(async () => {
  fakes = [new FakeSentinel(), new FakeSentinel()]
  const ports = await Promise.all(fakes.map((fake) => fake.start()))
  const target = { sentinels: ports.map((port) => ({ host: '127.0.0.1', port })), name: 'mymaster' }
  sentinels = new Sentinels(target as ConstructorParameters<typeof Sentinels>[0], {
    commandTimeoutMs: 5_000,
    connectionName: 'test',
  })
})
afterEach(async () => {
  sentinels.close()
  await Promise.all(fakes.map((fake) => fake.stop()))
})

async function found(): Promise<number | undefined> {
  const { address } = await sentinels.whereabouts().find(new AbortController().signal)
  return address.port
}

it('follows sentinels that were made anew without what they knew', async () => {
  for (const fake of fakes) fake.master = { port: 1_111, epoch: 9 }
  const before = await found()

  for (const fake of fakes) fake.master = { port: 2_222, epoch: 0 }

  expect([before, await found()]).toEqual([1_111, 2_222])
})

it('stays with the news while the one that told it is away, whatever the others say', async () => {
  const [leader, other] = fakes as [FakeSentinel, FakeSentinel]
  leader.master = { port: 2_222, epoch: 2 }
  other.master = { port: 1_111, epoch: 1 }
  const before = await found()

  await leader.stop()

  expect([before, await found()]).toEqual([2_222, 2_222])
  fakes.shift()
})

it.each([
  ['+promoted-slave', 'slave 127.0.0.1:2222 127.0.0.1 2222 @ mymaster 127.0.0.1 1111', [2_222]],
  ['+promoted-slave', 'slave 127.0.0.1:2222 127.0.0.1 2222 @ another 127.0.0.1 1111', []],
  ['+switch-master', 'mymaster 127.0.0.1 1111 127.0.0.1 2222', [2_222]],
  ['+switch-master', 'another 127.0.0.1 1111 127.0.0.1 2222', []],
])('hears of the next master by %s: %s', async (channel, text, expected) => {
  const [fake] = fakes as [FakeSentinel]
  const whereabouts = sentinels.whereabouts()
  const told: (number | undefined)[] = []
  whereabouts.onMove(({ port }) => told.push(port))
  await whereabouts.find(new AbortController().signal)

  await fake.publish(channel, text)
  await fake.publish('+switch-master', 'mymaster 127.0.0.1 2222 127.0.0.1 3333')

  await until(async () => told.includes(3_333), { what: 'the last is told' })
  expect(told).toEqual([...expected, 3_333])
})

it('hears of the switch where it may not hear of the promotion', async () => {
  for (const fake of fakes) fake.refused = '+promoted-slave'
  const [fake] = fakes as [FakeSentinel]
  const whereabouts = sentinels.whereabouts()
  const told: (number | undefined)[] = []
  whereabouts.onMove(({ port }) => told.push(port))
  await whereabouts.find(new AbortController().signal)

  await fake.publish('+switch-master', 'mymaster 127.0.0.1 1111 127.0.0.1 2222')

  await until(async () => told.length > 0, { what: 'it is told' })
  expect(told).toEqual([2_222])
})
