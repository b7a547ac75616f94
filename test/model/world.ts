import { deepStrictEqual } from 'node:assert'
import type { Redis as IoRedis } from 'ioredis'
import { AuditWalk } from '../../src/engine/audit/audit-walk.ts'
import type { JobPlace } from '../../src/store/job-place.ts'
import { keyPrefix, type QueueKeys, queueKeys } from '../../src/store/keys.ts'
import type { Level } from '../../src/store/names.ts'
import type { Redis, RedisArgument } from '../../src/store/redis.ts'
import { Requests } from '../../src/store/requests.ts'
import { runScript, type Script, type ScriptValue } from '../../src/store/script.ts'
import { readCounts } from '../../src/store/scripts/read-counts.ts'
import { readLimits } from '../../src/store/scripts/read-limits.ts'
import { registerQueue } from '../../src/store/scripts/register-queue.ts'
import type { Duty } from '../../src/store/scripts/take-duty.ts'
import type { Declaration, DeclaredSettings } from '../../src/store/settings.ts'
import { declareAll } from '../support/declare-all.ts'
import { dumpKeyspace, type Keyspace } from '../support/keyspace.ts'
import { predictKeyspace, readable } from './keyspace-model.ts'
import { QueueModel } from './reference/queue-model.ts'

const QUEUE = 'q'
const FIRST_INSTANT = 1_700_000_000_000_000
/** Scripts remember the replies to a client's last sixteen numbers; the engine repeats no older ones. */
const REMEMBERED = 16

interface Sent {
  readonly number: number
  readonly script: Script<never, never>
  readonly args: Readonly<Record<string, ScriptValue>>
  readonly reply: unknown
}

/** Remembers what was sent, so that it can be sent again under the same number. */
class RecordedRequests extends Requests {
  readonly sent: Sent[] = []

  override async run<K extends { [Name in keyof K]: string }, A extends { [Name in keyof A]: ScriptValue }>(
    script: Script<K, A>,
    args: (request: number, serverId: string) => NoInfer<A>,
    options: { giveUpAfterMs?: number } = {},
  ): Promise<readonly unknown[]> {
    let made: A | undefined
    const keepArgs = (request: number, serverId: string): A => {
      while (this.sent[0] && this.sent[0].number <= request - REMEMBERED) this.sent.shift()
      made = args(request, serverId)
      return made
    }
    const reply = await super.run<K, A>(script, keepArgs as (request: number, server: string) => NoInfer<A>, options)
    if (made && 'request' in made) {
      this.sent.push({
        number: made.request as number,
        script: script as unknown as Script<never, never>,
        args: made,
        reply,
      })
    }
    return reply
  }
}

export interface Held {
  readonly fence: string
  readonly jobKey: string
  readonly standing: Level
  readonly place: JobPlace
  /** It cost more than one permit, or a pool granted it. */
  readonly isSpecial: boolean
  /** Which of its members did. */
  readonly member: string | undefined
}

export interface Client {
  readonly name: string
  readonly keys: QueueKeys
  readonly requests: RecordedRequests
  /** Everything it ever claimed: what it still holds, and what it only thinks it holds. */
  readonly claimed: Held[]
  /** Of which it has told the store. */
  readonly told: Set<string>
}

/** The queue and its model side by side, the clients that call them, and the time that both are told. */
export class World {
  readonly model: QueueModel
  readonly prefix: string
  readonly redis: Redis
  readonly #direct: IoRedis
  clients: Client[] = []
  /** What was taken of the queue's own duties, lost ones included. */
  readonly duties: Duty[] = []
  now = FIRST_INSTANT
  ids = 0
  steps = 0
  #made = 0
  readonly #start: string

  private constructor(prefix: string, redis: Redis, direct: IoRedis, declared: DeclaredSettings) {
    this.prefix = prefix
    this.redis = redis
    this.#direct = direct
    this.model = new QueueModel(declared, this.now)
    this.#start = keyPrefix(prefix, QUEUE)
  }

  static async create(
    prefix: string,
    redis: Redis,
    direct: IoRedis,
    declared: DeclaredSettings,
    clients: number,
  ): Promise<World> {
    const world = new World(prefix, redis, direct, declared)
    await world.register(declareAll(declared))
    for (const type of world.model.aggregated) {
      await redis.call('HSET', queueKeys(prefix, QUEUE, '').queue, `aggregated:${type}`, '1')
    }
    for (let at = 0; at < clients; at++) world.addClient()
    return world
  }

  /** @param knewSince - Since when the process thought that the store knew the queue, if it did. */
  async register(declaration: Declaration, knewSince = ''): Promise<void> {
    const keys = queueKeys(this.prefix, QUEUE, '')
    await registerQueue(this.#storeOf(), keys, declaration, { knewSince, nowUs: this.nowUs })
  }

  get nowUs(): string {
    return String(this.now)
  }

  client(at: number): Client {
    return this.clients[at % this.clients.length] as Client
  }

  addClient(): void {
    this.#made += 1
    const name = `client-${this.#made}`
    const keys = queueKeys(this.prefix, QUEUE, name)
    const register = async (): Promise<void> => {
      throw new Error('the queue is not registered any more')
    }
    this.clients.push({
      name,
      keys,
      requests: new RecordedRequests({ client: name, redis: this.#storeOf(), keys, register }),
      claimed: [],
      told: new Set(),
    })
  }

  /** The store under the id of the server that the model knows: another id is a restart. */
  #storeOf(): Redis {
    const { redis, model } = this
    const store = {
      get serverId() {
        return model.server
      },
      at: () => store,
      confirm: async () => true,
      call: (command: string, ...args: RedisArgument[]) => redis.call(command, ...args),
      callWith: (command: string, args: readonly RedisArgument[]) => redis.callWith(command, args),
      ready: () => redis.ready(),
    } as unknown as Redis
    return store
  }

  async checkCounts(): Promise<void> {
    deepStrictEqual(await readCounts(this.client(0).requests, this.nowUs), this.model.counts(), 'counts')
  }

  /** Every job in one place, every tenant where it belongs, every counter right, nothing left over. */
  async audit(): Promise<void> {
    const found = await readable(this.#direct, await this.dump(), this.#start)
    deepStrictEqual(found, predictKeyspace(this.model), 'the whole keyspace')
    await this.checkLimits(this.model.tenants[this.steps % this.model.tenants.length]?.name ?? '')
    await this.auditByScripts()
  }

  /** How the limits of the queue stand, and those of a tenant if one is named. */
  async checkLimits(tenant: string): Promise<void> {
    const found = await readLimits(this.client(0).requests, tenant, this.nowUs)
    deepStrictEqual(found, this.model.limitRows(tenant, this.now), 'limits')
  }

  /** What the queue's own audit says: whatever has happened, it must find nothing to put right. */
  async auditByScripts(): Promise<void> {
    const walk = new AuditWalk(this.client(0).requests, { isRepairing: false, nowUs: this.nowUs })
    while (!walk.isOver) deepStrictEqual((await walk.step()).differences, [], `the audit, ${walk.position}`)
  }

  /** All keys but the alarms, which run out by the server's own time. */
  async dump(): Promise<Keyspace> {
    for (;;) {
      try {
        const keys = Object.entries(await dumpKeyspace(this.#direct, this.#start))
        return Object.fromEntries(keys.filter(([key]) => !key.startsWith(`${this.#start}alarm`)))
      } catch (error) {
        // It ran out between the list of keys and its turn to be read.
        if (!(error instanceof Error && error.message.endsWith('it holds a none'))) throw error
      }
    }
  }

  /** As when all keys of an ended action have expired: the server's own time stands still in a run. */
  async forgetAction(tenant: string, name: string): Promise<void> {
    const kinds = ['action', 'stats', 'letters', 'marks', 'results', 'finished']
    const ids = await this.#direct.keys(`${this.#start}ids:@${tenant}:${name}:*`)
    await this.#direct.unlink(...kinds.map((kind) => `${this.#start}${kind}:${tenant}:${name}`), ...ids)
  }

  /** Sends a request again as it was. */
  repeat(client: Client, sent: Sent): Promise<unknown> {
    return runScript(this.redis, sent.script, client.keys as never, sent.args as never)
  }
}
