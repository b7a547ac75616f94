import { StoreUnavailableError } from '../errors.ts'
import { ClusterTopology } from './cluster-topology.ts'
import type { RedisArgument } from './command.ts'
import { Connection, type RedisAddress } from './connection.ts'
import { keyOf, slotOf } from './key-slot.ts'
import { ReconnectingRedis } from './reconnecting.ts'
import type { RedisSettings } from './redis-options.ts'
import type { ConnectionWatch, Redis } from './redis-port.ts'
import type { ClusterTarget } from './redis-target.ts'
import { ScriptTimes } from './script-times.ts'
import { checkServer } from './server-info.ts'

// A call that was refused because its slot is on its way, or its node is being replaced, is made again this soon.
const AGAIN_MS = 20

/**
 * A Cluster: for each slot in use a connection to the node that has it, which follows the slot. A queue lives in one
 * slot, so it has a connection of its own, with an identity and reconnects like that to a single server.
 */
export class ClusterRedis implements Redis {
  /** One by one, the slots have different servers. */
  readonly serverId = ''
  readonly scriptTimes = new ScriptTimes()
  readonly #settings: RedisSettings
  readonly #topology: ClusterTopology
  readonly #slots = new Map<number, Redis>()
  readonly #listeners = new Set<(serverId: string) => void>()
  readonly #duplicates = new Set<Redis>()
  readonly #onClose: () => void
  readonly #watch: ConnectionWatch | undefined
  readonly #closing = new AbortController()

  constructor(
    settings: RedisSettings,
    target: ClusterTarget,
    options: { topology?: ClusterTopology; onClose?: () => void; watch?: ConnectionWatch | undefined } = {},
  ) {
    this.#settings = settings
    this.#topology = options.topology ?? new ClusterTopology(target, settings)
    this.#onClose = options.onClose ?? (() => this.#topology.close())
    this.#watch = options.watch
  }

  at(key: string): Redis {
    return this.#atSlot(slotOf(key))
  }

  call(command: string, ...args: RedisArgument[]): Promise<unknown> {
    return this.callWith(command, args)
  }

  /** To the server that has the command's first key, again while that refuses because it does not have it now. */
  async callWith(command: string, args: readonly RedisArgument[]): Promise<unknown> {
    const key = keyOf(command, args)
    const redis = key === undefined ? this.#any() : this.at(key)
    const giveUpAt = performance.now() + this.#settings.commandTimeoutMs
    for (;;) {
      try {
        return await redis.callWith(command, args)
      } catch (error) {
        const isRefused = error instanceof StoreUnavailableError && error.outcome === 'not-sent'
        if (!isRefused || performance.now() >= giveUpAt || this.#closing.signal.aborted) throw error
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
      }
    }
  }

  block(command: string, args: readonly RedisArgument[], timeoutMs: number): Promise<unknown> {
    const key = keyOf(command, args)
    return (key === undefined ? this.#any() : this.at(key)).block(command, args, timeoutMs)
  }

  /** On connections for this one question: nodes whose slots are not in use have none. */
  async callEach(command: string, ...args: RedisArgument[]): Promise<unknown[]> {
    const masters = await this.#topology.masters()
    return Promise.all(masters.map((address) => this.#askMaster(address, command, args)))
  }

  /** Every node that has slots must answer and be one that may be used: work may move to any of them. */
  async ready(): Promise<void> {
    const { allowEviction } = this.#settings
    for (const info of await this.callEach('INFO')) checkServer(String(info), { allowEviction })
  }

  onReconnect(listener: (serverId: string) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  duplicate(): Redis {
    const duplicate: Redis = new ClusterRedis(this.#settings, this.#settings.redis as ClusterTarget, {
      topology: this.#topology,
      onClose: () => this.#duplicates.delete(duplicate),
    })
    this.#duplicates.add(duplicate)
    return duplicate
  }

  confirm(key: string, serverId: string): Promise<boolean> {
    return this.at(key).confirm(key, serverId)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.all([...this.#slots.values(), ...this.#duplicates].map((each) => each.close()))
    this.#onClose()
  }

  #atSlot(slot: number): Redis {
    const known = this.#slots.get(slot)
    if (known) return known
    const redis = new ReconnectingRedis(this.#settings, () => this.#topology.whereabouts(slot), {
      scriptTimes: this.scriptTimes,
      watch: this.#watch,
    })
    redis.onReconnect((serverId) => {
      for (const listener of this.#listeners) listener(serverId)
    })
    this.#slots.set(slot, redis)
    if (this.#closing.signal.aborted) void redis.close()
    return redis
  }

  #any(): Redis {
    return this.#slots.values().next().value ?? this.#atSlot(0)
  }

  async #askMaster(address: RedisAddress, command: string, args: readonly RedisArgument[]): Promise<unknown> {
    const { connectionName, commandTimeoutMs } = this.#settings
    const { signal } = this.#closing
    const connection = await Connection.open({ address, connectionName, commandTimeoutMs, signal })
    try {
      return await connection.send(command, args)
    } finally {
      void connection.close()
    }
  }
}
