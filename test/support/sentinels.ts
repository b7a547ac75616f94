import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import type { RedisSentinels } from '../../src/index.ts'
import { startRedis, type TestRedis } from '../../src/testing/redis-server.ts'
import { freePort, ServerProcess } from '../../src/testing/server-process.ts'
import { until } from './until.ts'

/** A real master with two replicas, watched by three real sentinels. */
export interface TestSentinels {
  /** What a Sluice takes as `redis`. */
  readonly redis: RedisSentinels
  readonly servers: readonly TestRedis[]
  readonly sentinels: readonly ServerProcess[]
  masters(): Promise<readonly TestRedis[]>
  /** Who the sentinels say is the master. */
  master(): Promise<TestRedis>
  /** Makes a replica the master while the old one still runs, and becomes a replica. */
  promoteAnother(): Promise<void>
  /** What CLIENT LIST says, of all servers and sentinels. */
  clientLists(): Promise<string[]>
  /** Waits until they say that it is another one. */
  failedOver(from: TestRedis): Promise<TestRedis>
  /** Lets every server run again, as a replica unless it is the master, and waits until all have the same data. */
  heal(): Promise<void>
  stop(): Promise<void>
}

const NAME = 'mymaster'
const FAILOVER_MS = 30_000
/**
 * After so long without an answer a sentinel holds the master for dead. They ask once a second: with less than two they
 * sometimes take a master for dead that they have just promoted, and what it has acknowledged is lost with it.
 */
const DOWN_AFTER_MS = 2_000

export async function startSentinels(): Promise<TestSentinels> {
  const started: { stop(): Promise<void> }[] = []
  try {
    return await start(started)
  } catch (error) {
    await Promise.all(started.map((each) => each.stop()))
    throw error
  }
}

async function start(started: { stop(): Promise<void> }[]): Promise<TestSentinels> {
  const config = { 'repl-diskless-sync-delay': 0, 'repl-timeout': 10 }
  const server = async (more: Record<string, string | number>) => {
    const redis = await startRedis({ config: { ...config, ...more } })
    started.push(redis)
    return redis
  }
  const first = await server({})
  const replicaof = `127.0.0.1 ${first.port}`
  const servers = [first, await server({ replicaof }), await server({ replicaof })]
  const ports: number[] = []
  const sentinels: ServerProcess[] = []
  for (let count = 0; count < 3; count++) {
    const port = await freePort()
    const sentinel = await ServerProcess.make()
    started.push(sentinel)
    await startSentinel(sentinel, { port, master: first.port })
    ports.push(port)
    sentinels.push(sentinel)
  }
  const topology = new Servers(servers, sentinels, ports)
  await topology.ready()
  return topology
}

async function startSentinel(
  sentinel: ServerProcess,
  { port, master }: { port: number; master: number },
): Promise<void> {
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${sentinel.folder}`,
    `sentinel monitor ${NAME} 127.0.0.1 ${master} 2`,
    `sentinel down-after-milliseconds ${NAME} ${DOWN_AFTER_MS}`,
    // Also how long after a failover the next one of the same master may start: twice this.
    `sentinel failover-timeout ${NAME} 3000`,
    `sentinel parallel-syncs ${NAME} 2`,
  ]
  const file = join(sentinel.folder, 'sentinel.conf')
  await writeFile(file, `${lines.join('\n')}\n`)
  await sentinel.start([file, '--sentinel'], /\+monitor master/)
}

class Servers implements TestSentinels {
  readonly redis: RedisSentinels
  readonly servers: readonly TestRedis[]
  readonly sentinels: readonly ServerProcess[]
  readonly #asked: Redis[]

  constructor(servers: readonly TestRedis[], sentinels: readonly ServerProcess[], ports: readonly number[]) {
    this.servers = servers
    this.sentinels = sentinels
    this.redis = { sentinels: ports.map((port) => `127.0.0.1:${port}`), name: NAME }
    this.#asked = ports.map((port) => {
      const client = new Redis(port, '127.0.0.1')
      client.on('error', () => {})
      return client
    })
  }

  /** Every sentinel knows the two others and both replicas: only then a failover can be agreed on. */
  async ready(): Promise<void> {
    await until(
      async () => {
        const views = await Promise.all(this.#asked.map(viewOf))
        return views.every((view) => view['num-slaves'] === '2' && view['num-other-sentinels'] === '2')
      },
      { what: 'the sentinels know each other and the replicas' },
    )
    await this.#synchronized()
  }

  async master(): Promise<TestRedis> {
    const answers = await Promise.all(
      this.#asked.map(async (each) => ({
        epoch: Number((await viewOf(each))['config-epoch']),
        address: (await each.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME)) as string[],
      })),
    )
    const { address } = answers.reduce((a, b) => (b.epoch > a.epoch ? b : a))
    const found = this.servers.find(({ port }) => String(port) === address[1])
    if (!found) throw new Error(`the sentinels name an unknown master, at ${address[1]}`)
    return found
  }

  async masters(): Promise<readonly TestRedis[]> {
    return [await this.master()]
  }

  async promoteAnother(): Promise<void> {
    // Refused for a while after another failover.
    await until(async () => (await this.#asked[0]?.call('SENTINEL', 'FAILOVER', NAME)) === 'OK', {
      what: 'a sentinel starts a failover',
    })
  }

  async clientLists(): Promise<string[]> {
    const all = [...this.#asked, ...this.servers.map((server) => server.client())]
    return Promise.all(all.map(async (each) => String(await each.call('CLIENT', 'LIST'))))
  }

  async failedOver(from: TestRedis): Promise<TestRedis> {
    await until(async () => (await this.master()) !== from, { what: 'a failover', timeoutMs: FAILOVER_MS })
    return this.master()
  }

  async heal(): Promise<void> {
    // Whoever is made a replica of a master that is none any more loses what it has.
    await until(async () => (await this.#agreed()) !== undefined, { what: 'the sentinels agree' })
    const master = await this.master()
    for (const server of this.servers) {
      if (!server.isRunning) await server.restart()
      else await server.kill('SIGCONT')
      // The sentinels would say so themselves, about ten seconds later.
      if (server !== master) await server.client().replicaof('127.0.0.1', master.port)
    }
    await this.#synchronized()
    await until(
      async () => {
        const replicas = await Promise.all(this.#asked.map((each) => each.call('SENTINEL', 'REPLICAS', NAME)))
        return !JSON.stringify(replicas).includes('_down') && (await this.#agreed()) === master
      },
      { what: 'the sentinels hold nobody for down' },
    )
  }

  /** The master that all sentinels name, when it knows that it is one; undefined while a failover is under way. */
  async #agreed(): Promise<TestRedis | undefined> {
    const views = await Promise.all(this.#asked.map(viewOf))
    const found = this.servers.find(({ port }) => String(port) === views[0]?.port)
    const isAgreed = views.every(({ flags, port }) => flags === 'master' && port === views[0]?.port)
    if (!found || !isAgreed) return undefined
    return (await found.client().info('replication')).includes('role:master') ? found : undefined
  }

  async stop(): Promise<void> {
    for (const client of this.#asked) client.disconnect()
    await Promise.all([...this.servers, ...this.sentinels].map((each) => each.stop()))
  }

  /** All that was written until now: work may go on meanwhile. */
  async #synchronized(): Promise<void> {
    const master = (await this.master()).client()
    const written = Number(/master_repl_offset:(\d+)/.exec(await master.info('replication'))?.[1])
    await until(
      async () => {
        const info = await master.info('replication')
        const offsets = [...info.matchAll(/^slave\d+:.*state=online,offset=(\d+)/gm)].map(([, each]) => Number(each))
        return offsets.length === this.servers.length - 1 && offsets.every((each) => each >= written)
      },
      { what: 'both replicas have all data' },
    )
  }
}

async function viewOf(sentinel: Redis): Promise<Record<string, string>> {
  const flat = (await sentinel.call('SENTINEL', 'MASTER', NAME)) as string[]
  const fields: Record<string, string> = {}
  for (let at = 0; at < flat.length; at += 2) fields[flat[at] as string] = flat[at + 1] as string
  return fields
}
