import type { Redis } from 'ioredis'
import type { RedisCluster } from '../../src/index.ts'
import { slotOf } from '../../src/store/key-slot.ts'
import { type StartRedisOptions, startRedis, type TestRedis } from '../../src/testing/redis-server.ts'
import { until } from './until.ts'

export interface ClusterOptions {
  /** Replicas of each of the three masters. @default 1 */
  replicas?: number
  /** After so long without an answer a node is held for dead. @default 1_500 */
  nodeTimeoutMs?: number
  redis?: StartRedisOptions
}

/** A real Cluster of three masters. */
export interface TestCluster {
  /** What a Sluice takes as `redis`. */
  readonly redis: RedisCluster
  /** The masters of the beginning first, then their replicas in the same order. */
  readonly nodes: readonly TestRedis[]
  /** Also those that have no slot. */
  masters(): Promise<readonly TestRedis[]>
  /** The node that serves this key now. */
  masterOf(key: string): Promise<TestRedis>
  /**
   * Moves the slot of this key to another master, key by key, as `redis-cli --cluster reshard` does.
   * @param pauseMs - Between two keys: how long the slot is in two places. @default 0
   */
  moveSlot(key: string, to: TestRedis, pauseMs?: number): Promise<void>
  /** Waits until another node than this one has the slot of the key. */
  failedOver(key: string, from: TestRedis): Promise<TestRedis>
  /** Lets every node run again, and waits until the Cluster says that all is well. */
  heal(): Promise<void>
  stop(): Promise<void>
}

const SLOTS = 16_384
const MASTERS = 3
const MIGRATE_TIMEOUT_MS = 5_000

export async function startCluster(options: ClusterOptions = {}): Promise<TestCluster> {
  const { replicas = 1, nodeTimeoutMs = 1_500 } = options
  const nodes: TestRedis[] = []
  const cluster = new Nodes(nodes)
  try {
    for (let count = 0; count < MASTERS * (1 + replicas); count++) {
      const config = {
        'cluster-node-timeout': nodeTimeoutMs,
        // A replica takes over however long ago it has heard from its master.
        'cluster-replica-validity-factor': 0,
        'repl-diskless-sync-delay': 0,
        ...options.redis?.config,
      }
      nodes.push(await startRedis({ ...options.redis, cluster: 'node', config }))
    }
    await cluster.join()
  } catch (error) {
    await cluster.stop()
    throw error
  }
  return cluster
}

class Nodes implements TestCluster {
  readonly nodes: readonly TestRedis[]
  readonly #clients = new Map<TestRedis, Redis>()

  constructor(nodes: readonly TestRedis[]) {
    this.nodes = nodes
  }

  get redis(): RedisCluster {
    return { cluster: this.nodes.map(({ port }) => `127.0.0.1:${port}`) }
  }

  async join(): Promise<void> {
    const [first] = this.nodes as [TestRedis]
    for (const [index, node] of this.nodes.entries()) {
      const client = this.#client(node)
      await client.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1)
      if (index < MASTERS) {
        const from = Math.floor((index * SLOTS) / MASTERS)
        const to = Math.floor(((index + 1) * SLOTS) / MASTERS) - 1
        await client.call('CLUSTER', 'ADDSLOTSRANGE', from, to)
      }
      if (index > 0) await client.call('CLUSTER', 'MEET', '127.0.0.1', first.port, first.busPort)
    }
    const all = `cluster_known_nodes:${this.nodes.length}`
    await this.#everywhere((info) => info.includes('cluster_state:ok') && info.includes(all))
    for (const [index, node] of this.nodes.slice(MASTERS).entries()) {
      await this.#client(node).call('CLUSTER', 'REPLICATE', await this.#idOf(this.nodes[index % MASTERS] as TestRedis))
    }
    await this.#healthy()
  }

  async masterOf(key: string): Promise<TestRedis> {
    const slot = slotOf(key)
    const views = await Promise.all(this.nodes.filter(({ isRunning }) => isRunning).map((node) => this.#viewOf(node)))
    const newest = views.reduce((a, b) => (b.epoch > a.epoch ? b : a))
    const port = newest.ranges.find(([from, to]) => from <= slot && slot <= to)?.[2]?.[1]
    const found = this.nodes.find((node) => node.port === port)
    if (!found) throw new Error(`nobody has slot ${slot}`)
    return found
  }

  async masters(): Promise<readonly TestRedis[]> {
    const infos = await Promise.all(this.nodes.map((node) => this.#client(node).info('replication')))
    return this.nodes.filter((_, index) => infos[index]?.includes('role:master'))
  }

  async moveSlot(key: string, to: TestRedis, pauseMs = 0): Promise<void> {
    const slot = slotOf(key)
    const from = await this.masterOf(key)
    if (from === to) return
    const [source, target] = [this.#client(from), this.#client(to)]
    const toId = await this.#idOf(to)
    await target.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', await this.#idOf(from))
    await source.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId)
    for (;;) {
      const keys = (await source.call('CLUSTER', 'GETKEYSINSLOT', slot, 10)) as string[]
      if (keys.length === 0) break
      for (const each of keys) {
        await source.call('MIGRATE', '127.0.0.1', to.port, '', 0, MIGRATE_TIMEOUT_MS, 'KEYS', each)
        if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
      }
    }
    // The target first: it alone may then serve the slot.
    await target.call('CLUSTER', 'SETSLOT', slot, 'NODE', toId)
    await source.call('CLUSTER', 'SETSLOT', slot, 'NODE', toId)
  }

  async failedOver(key: string, from: TestRedis): Promise<TestRedis> {
    await until(async () => (await this.masterOf(key)) !== from, {
      what: 'another node has the slot',
      timeoutMs: 30_000,
    })
    return this.masterOf(key)
  }

  async heal(): Promise<void> {
    for (const node of this.nodes) {
      if (node.isRunning) await node.kill('SIGCONT')
      else await node.restart()
    }
    await this.#healthy()
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()))
  }

  /** All see the Cluster as whole, and every replica has its master's data. */
  async #healthy(): Promise<void> {
    await this.#everywhere((info) => info.includes('cluster_state:ok') && !/cluster_slots_p?fail:[1-9]/.test(info))
    await until(
      async () => {
        const infos = await Promise.all(this.nodes.map((node) => this.#client(node).info('replication')))
        const replicas = infos.filter((info) => info.includes('role:slave'))
        return (
          replicas.length === this.nodes.length - MASTERS && replicas.every((each) => each.includes('link_status:up'))
        )
      },
      { what: 'every replica is connected to its master' },
    )
  }

  async #everywhere(isSo: (info: string) => boolean): Promise<void> {
    await until(
      async () => {
        const infos = await Promise.all(this.nodes.map((node) => this.#client(node).call('CLUSTER', 'INFO')))
        return infos.every((info) => isSo(String(info)))
      },
      { what: 'all nodes see a whole Cluster' },
    )
  }

  async #idOf(node: TestRedis): Promise<string> {
    return String(await this.#client(node).call('CLUSTER', 'MYID'))
  }

  async #viewOf(node: TestRedis): Promise<{ epoch: number; ranges: [number, number, [string, number]][] }> {
    const client = this.#client(node)
    const asked = Promise.all([client.call('CLUSTER', 'INFO'), client.call('CLUSTER', 'SLOTS')])
    const [info, ranges] = await Promise.race([asked, silence()])
    const epoch = Number(/cluster_current_epoch:(\d+)/.exec(String(info))?.[1])
    return { epoch, ranges: ranges as [number, number, [string, number]][] }
  }

  #client(node: TestRedis): Redis {
    const client = this.#clients.get(node) ?? node.client()
    this.#clients.set(node, client)
    return client
  }
}

/** A node that hangs has no view. */
function silence(): Promise<[string, unknown[]]> {
  return new Promise((resolve) => setTimeout(() => resolve(['cluster_current_epoch:-1', []]), 500).unref())
}
