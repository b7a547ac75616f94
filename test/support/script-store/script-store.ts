import type { Redis as Client } from 'ioredis'
import { checkQueueOptions, declarationOf, type QueueOptions } from '../../../src/engine/queue-options.ts'
import { type GroupKeys, groupKeys, keyPrefix, type QueueKeys, queueKeys } from '../../../src/store/keys.ts'
import { hasCost } from '../../../src/store/record.ts'
import { openRedis, type Redis, type RedisOptions } from '../../../src/store/redis.ts'
import { Requests } from '../../../src/store/requests.ts'
import { endAction } from '../../../src/store/scripts/end-action.ts'
import {
  type ClaimReply,
  type ClaimRequest,
  type Finish,
  finishAndClaim,
} from '../../../src/store/scripts/finish-and-claim.ts'
import { type ActionRules, openAction } from '../../../src/store/scripts/open-action.ts'
import { type QueueCounts, readCounts } from '../../../src/store/scripts/read-counts.ts'
import { registerQueue } from '../../../src/store/scripts/register-queue.ts'
import { type SubmitLine, type SubmitReply, submitJobs } from '../../../src/store/scripts/submit-jobs.ts'
import { type Duty, type DutyTaker, takeDuty } from '../../../src/store/scripts/take-duty.ts'
import { library } from '../../../src/store/scripts.generated.ts'
import { startRedis, type TestRedis } from '../../../src/testing/redis-server.ts'
import { startCluster } from '../cluster.ts'
import { guardedLibrary } from '../guarded-library.ts'
import { dumpKeyspace, type KeyContent, type Keyspace } from '../keyspace.ts'
import { replaceLibrary } from '../replace-library.ts'
import { difference, type KeyChange } from './keyspace-changes.ts'
import { unpackKey } from './packed-fields.ts'
import { finishedAs, record } from './script-jobs.ts'
import { ScriptMonitor } from './script-monitor.ts'

/** The instant at which a script test starts, in µs: small, so that expected values can be read. */
const START = 1_000_000_000

// In every script test a call fails that leaves something behind in what all calls share.
replaceLibrary(guardedLibrary(library.source))

const QUEUE = 'q'
const PREFIX = 'test'

/** A server that script tests run on. */
interface ScriptServer {
  /** The node that has the keys of the queue. */
  readonly node: TestRedis
  readonly redis: RedisOptions['redis']
}

interface StartedStore {
  readonly node: TestRedis
  readonly client: Client
  readonly redis: Redis
  readonly monitor: ScriptMonitor
}

/** One for all files that a process runs, until it ends: a master of a Cluster takes 2 s to start. */
let server: Promise<ScriptServer> | undefined

/** A node that owns all slots; where the project says so (vitest.config.ts), that of a Cluster of three that has the queue. */
function startServer(): Promise<ScriptServer> {
  return process.env.SCRIPTS_RUN_ON === 'cluster-of-three' ? startOneOfThree() : startOneNode()
}

async function startOneNode(): Promise<ScriptServer> {
  const node = await startRedis({ cluster: true })
  return { node, redis: { path: node.path } }
}

async function startOneOfThree(): Promise<ScriptServer> {
  const cluster = await startCluster({ replicas: 0 })
  return { node: await cluster.masterOf(`{${QUEUE}}`), redis: cluster.redis }
}

/**
 * One queue on a node of a Cluster, where a script that touches two slots fails; time is injected and stands still.
 * Says what a script changed in the whole keyspace, and which keys it met too late.
 */
export class ScriptStore {
  /** What scripts take for the present, in µs. */
  now = START
  /** Which queue the calls below are of. */
  queue = QUEUE
  /**
   * Whose limits it shares; its own name: nobody's. On a Cluster one node is looked at, so a group must live on the node of
   * the queue, as 'gitlab' does.
   */
  group = QUEUE
  /** What scripts take for the server's identity. */
  serverId = 'server-1'
  #started: StartedStore | undefined
  readonly #requests = new Map<string, Requests>()
  readonly #groupRequests = new Map<string, Requests<GroupKeys>>()

  async start(): Promise<void> {
    server ??= startServer()
    const { node, redis } = await server
    const monitor = await ScriptMonitor.start(node)
    this.#started = { node, client: node.client(), redis: openRedis({ redis }), monitor }
  }

  /** The server stays, for the next. */
  async stop(): Promise<void> {
    const { client, monitor, redis } = this.#running
    monitor.stop()
    client.disconnect()
    await redis.close()
  }

  get #running(): StartedStore {
    if (this.#started === undefined) throw new Error('the store of a script test runs only while its tests do')
    return this.#started
  }

  /** The node that has the keys of the queue. */
  get node(): TestRedis {
    return this.#running.node
  }

  get client(): Client {
    return this.#running.client
  }

  /** Starts over with a registered queue that holds nothing. */
  async begin(options: QueueOptions = {}): Promise<void> {
    await this.empty()
    await this.register(options)
  }

  /** Starts over with nothing at all. */
  async empty(): Promise<void> {
    await this.client.flushall()
    this.#requests.clear()
    this.#groupRequests.clear()
    this.now = START
    this.serverId = 'server-1'
    this.queue = QUEUE
    this.group = QUEUE
  }

  /** From now on the calls are of another queue of this group. */
  use(queue: string): void {
    this.queue = queue
  }

  /** As a process does that gives these options. Answers since when the store knows the queue. */
  register(options: QueueOptions = {}, knewSince = ''): Promise<string> {
    const declaration = declarationOf(options, checkQueueOptions(this.queue, options))
    return registerQueue(this.redis, this.keys(), declaration, { knewSince, nowUs: this.nowUs })
  }

  get nowUs(): string {
    return String(this.now)
  }

  /** The port as scripts need it, with the identity that the test chose. */
  get redis(): Redis {
    const { redis } = this.#running
    const store = this
    return {
      get serverId() {
        return store.serverId
      },
      at: () => store.redis,
      ready: () => redis.ready(),
      confirm: async () => true,
      callWith: (command: string, args: readonly (string | number)[]) => redis.callWith(command, args),
    } as unknown as Redis
  }

  keys(client = 'me'): QueueKeys {
    return queueKeys(PREFIX, this.queue, client, this.group)
  }

  /** A client's requests, numbered on from its last. A queue that is not known is an error here, not registered. */
  requests(client = 'me'): Requests {
    const known = this.#requests.get(`${this.queue} ${client}`)
    if (known) return known
    const requests = new Requests({
      client,
      redis: this.redis,
      keys: this.keys(client),
      register: async () => {
        throw new Error('unregistered')
      },
    })
    this.#requests.set(`${this.queue} ${client}`, requests)
    return requests
  }

  /** The same of a client that uses the group's limits without a queue. */
  groupRequests(client = 'caller'): Requests<GroupKeys> {
    const known = this.#groupRequests.get(client)
    if (known) return known
    const requests = this.groupRequestsKnowing('', client)
    this.#groupRequests.set(client, requests)
    return requests
  }

  /** The same of one that was told since when the store knows the group. */
  groupRequestsKnowing(since: string, client = 'knowing'): Requests<GroupKeys> {
    const keys = groupKeys(PREFIX, this.group, client)
    const register = async () => {
      throw new Error('unregistered')
    }
    return new Requests<GroupKeys>({ client, redis: this.redis, keys, register, knownSince: () => since })
  }

  /** Forgets how far a client has counted: its next request has number 1 again, as when a reply was lost. */
  repeatFrom1(client = 'me'): void {
    this.#requests.delete(`${this.queue} ${client}`)
    this.#groupRequests.delete(client)
  }

  /** Jobs at the end of one lane; their records hold 1, 2, … as payload. */
  submit(tenant: string, count: number, line: Partial<SubmitLine> = {}): Promise<SubmitReply> {
    const entries = Array.from({ length: count }, (_, index) => record(index + 1))
    return this.submitLines([{ ...emptyLine, tenant, entries, ...line }])
  }

  submitLines(lines: readonly Omit<SubmitLine, 'hasCosts'>[], client = 'producer'): Promise<SubmitReply> {
    const counted = lines.map((line) => ({ ...line, hasCosts: line.entries.some(hasCost) }))
    return submitJobs(this.requests(client), counted, { nowUs: this.nowUs })
  }

  /** An action of that name; its jobs are submitted to the lane `@<name>`. */
  openAction(
    name: string,
    rules: Partial<ActionRules> = {},
    options: { tenant?: string; webhook?: string; begunBy?: string } = {},
  ) {
    return openAction(
      this.requests('producer'),
      {
        tenant: options.tenant ?? 'a',
        name,
        rules: { ...plainRules, lane: `@${name}`, ...rules },
        webhook: options.webhook ?? '',
        begunBy: options.begunBy ?? '',
      },
      { nowUs: this.nowUs },
    )
  }

  sealAction(name: string, tenant = 'a') {
    return endAction(this.requests('producer'), { tenant, name, verb: 'seal' }, this.nowUs)
  }

  cancelAction(name: string, tenant = 'a') {
    return endAction(this.requests('producer'), { tenant, name, verb: 'cancel' }, this.nowUs)
  }

  /** What the client gets to do besides jobs: anything, unless it says otherwise. */
  async takeDuty(client = 'me', taker: Partial<DutyTaker> = {}): Promise<Duty | undefined> {
    const anything: DutyTaker = {
      kinds: ['aggregate', 'webhook', 'seal', 'free'],
      types: ['SEND'],
      leaseMs: 30_000,
      unknownTypeMs: 3_600_000,
    }
    const reply = await takeDuty(this.requests(client), { ...anything, ...taker }, this.nowUs)
    return reply.word === 'taken' ? reply.duty : undefined
  }

  claim(wanted: number, claim: Partial<ClaimRequest> = {}, client = 'me'): Promise<ClaimReply> {
    return finishAndClaim(this.requests(client), {
      wanted,
      levels: 'high normal low',
      leaseMs: 15_000,
      idleForMs: 0,
      hasSuspect: false,
      finished: [],
      nowUs: this.nowUs,
      ...claim,
    })
  }

  /** Of a process that was told since when the store knows the queue. */
  requestsKnowing(since: string): Requests {
    const register = async () => {
      throw new Error('unregistered')
    }
    const keys = this.keys('knowing')
    return new Requests({ client: 'knowing', redis: this.redis, keys, register, knownSince: () => since })
  }

  /** As such a process claims one job. */
  claimKnowing(since: string): Promise<ClaimReply> {
    const claim = { levels: 'high normal low', leaseMs: 15_000, idleForMs: 0, hasSuspect: false, finished: [] }
    return finishAndClaim(this.requestsKnowing(since), { ...claim, wanted: 1, nowUs: this.nowUs })
  }

  /** Finishes every job of a claim alike, and claims nothing. */
  finish(claim: ClaimReply, finish: Finish, client = 'me'): Promise<ClaimReply> {
    return this.claim(0, { finished: finishedAs(claim, finish) }, client)
  }

  /** The queue's counts of these names, in their order. */
  async counts(...names: readonly (keyof QueueCounts)[]): Promise<number[]> {
    const counts = await readCounts(this.requests('counter'))
    return names.map((name) => counts[name])
  }

  /** What an action answers, and everything that changed in the keyspace: what is not named is as it was. */
  async changesOf<Reply>(action: () => Promise<Reply>): Promise<{ reply: Reply; changes: Record<string, KeyChange> }> {
    const before = await this.dump()
    const reply = await action()
    return { reply, changes: difference(before, await this.dump()) }
  }

  /** The whole keyspace, without the prefix of the names, readable where scripts pack, and records on one line. */
  async dump(): Promise<Keyspace> {
    const dump = await dumpKeyspace(this.client)
    const start = keyPrefix(PREFIX, this.queue, this.group)
    const ofGroup = start.slice(0, -this.queue.length - 1)
    const entries = await Promise.all(
      Object.entries(dump).map(async ([name, content]): Promise<[string, KeyContent]> => {
        const tag = name.startsWith(ofGroup) ? name.slice(ofGroup.length) : name
        const part = name.startsWith(start) ? name.slice(start.length) : tag
        return [part, await unpackKey(this.client, name, part, content)]
      }),
    )
    return Object.fromEntries(entries)
  }

  /** Runs an action while Redis has no memory left. */
  async outOfMemory<T>(action: () => Promise<T>): Promise<T> {
    await this.client.config('SET', 'maxmemory', '1')
    try {
      return await action()
    } finally {
      await this.client.config('SET', 'maxmemory', '0')
    }
  }

  /**
   * Keys that a script chose itself and met only after its first write, since the last question: were their slot
   * on its way to another node, the script would fail with half of its work done.
   */
  keysMetTooLate(): Promise<string[]> {
    return this.#running.monitor.keysMetTooLate(this.client)
  }
}

const plainRules = {
  type: 'SEND',
  level: 'normal',
  keepResults: false,
  failFast: false,
  maxFailureRatio: undefined,
  sealTimeoutMs: 0,
} as const

const emptyLine: Omit<SubmitLine, 'hasCosts'> = {
  tenant: 'a',
  level: 'normal',
  lane: 'default',
  basePriority: undefined,
  kind: 'fresh',
  entries: [],
}
