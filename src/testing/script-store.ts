import type { Redis as Client } from 'ioredis'
import { decodeJobs } from '../engine/job.ts'
import { checkQueueOptions, declaredSettings, type QueueOptions } from '../engine/queue-options.ts'
import { type GroupKeys, groupKeys, keyPrefix, type QueueKeys, queueKeys } from '../store/keys.ts'
import type { Level } from '../store/names.ts'
import { encodeRecord } from '../store/record.ts'
import { openRedis, type Redis, type RedisOptions } from '../store/redis.ts'
import { Requests } from '../store/requests.ts'
import { endAction } from '../store/scripts/end-action.ts'
import {
  type ClaimReply,
  type ClaimRequest,
  type Finish,
  type FinishedInAction,
  finishAndClaim,
} from '../store/scripts/finish-and-claim.ts'
import { type ActionRules, openAction } from '../store/scripts/open-action.ts'
import { type QueueCounts, readCounts } from '../store/scripts/read-counts.ts'
import { registerQueue } from '../store/scripts/register-queue.ts'
import { type SubmitLine, type SubmitReply, submitJobs } from '../store/scripts/submit-jobs.ts'
import { type Duty, type DutyTaker, takeDuty } from '../store/scripts/take-duty.ts'
import * as scripts from '../store/scripts.generated.ts'
import { dumpKeyspace, type KeyContent, type Keyspace } from './keyspace.ts'
import { startRedis, type TestRedis } from './redis-server.ts'
import { type ScriptCall, ScriptMonitor } from './script-monitor.ts'

/** A key's content, or what changed of it; `null`: gone. A hash or zset maps fields to what they hold now. */
export type KeyChange = string | string[] | Record<string, string | number | boolean | null> | null

/** The instant at which a script test starts, in µs: small, so that expected values can be read. */
const START = 1_000_000_000

const QUEUE = 'q'
const PREFIX = 'test'

/** A server that script tests run on. */
interface ScriptServer {
  /** The node that has the keys of the queue. */
  readonly server: TestRedis
  readonly redis: RedisOptions['redis']
  stop(): Promise<void>
}

/** A one-node cluster of each store's own, unless a test says otherwise. */
let startServer = async (): Promise<ScriptServer> => {
  const server = await startRedis({ cluster: true })
  return { server, redis: { path: server.path }, stop: () => server.stop() }
}

/** Every script test from now on runs on this server, which somebody else stops. @param server - Has the slot of `{q}`. */
export function runScriptTestsOn(server: TestRedis, redis: RedisOptions['redis']): void {
  startServer = async () => ({ server, redis, stop: async () => {} })
}

/**
 * One queue on a one-node cluster, where a script that touches two slots fails; time is injected and stands still.
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
  readonly server: TestRedis
  readonly client: Client
  readonly #redis: Redis
  readonly #stopServer: () => Promise<void>
  readonly #monitor: ScriptMonitor
  readonly #requests = new Map<string, Requests>()
  readonly #groupRequests = new Map<string, Requests<GroupKeys>>()

  static async start(): Promise<ScriptStore> {
    const started = await startServer()
    return new ScriptStore(started, started.server.client(), await ScriptMonitor.start(started.server))
  }

  private constructor(started: ScriptServer, client: Client, monitor: ScriptMonitor) {
    this.server = started.server
    this.client = client
    this.#monitor = monitor
    this.#stopServer = () => started.stop()
    this.#redis = openRedis({ redis: started.redis })
  }

  async stop(): Promise<void> {
    this.#monitor.stop()
    await this.#redis.close()
    await this.#stopServer()
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

  async register(options: QueueOptions = {}, isAgain = false): Promise<void> {
    const declared = declaredSettings(checkQueueOptions(this.queue, options))
    await registerQueue(this.redis, this.keys(), declared, { isAgain, nowUs: this.nowUs })
  }

  get nowUs(): string {
    return String(this.now)
  }

  /** The port as scripts need it, with the identity that the test chose. */
  get redis(): Redis {
    const redis = this.#redis
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
    const keys = groupKeys(PREFIX, this.group, client)
    const register = async () => {
      throw new Error('unregistered')
    }
    const requests = new Requests<GroupKeys>({ client, redis: this.redis, keys, register })
    this.#groupRequests.set(client, requests)
    return requests
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

  submitLines(lines: readonly SubmitLine[], client = 'producer'): Promise<SubmitReply> {
    return submitJobs(this.requests(client), lines, { nowUs: this.nowUs })
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
      this.nowUs,
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
        return [part, await this.#unpack(name, part, content)]
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
  async keysMetTooLate(): Promise<string[]> {
    const calls = await this.#monitor.callsSoFar(this.client)
    return [...new Set(calls.flatMap(metTooLate))]
  }

  async #unpack(name: string, part: string, content: KeyContent): Promise<KeyContent> {
    if ('list' in content) return { ...content, list: content.list.map(onOneLine) }
    if (!('hash' in content)) return content
    const hash: Record<string, string> = {}
    for (const [field, value] of Object.entries(content.hash)) {
      const names = packedFields[part.split(':')[0] as string]?.[field]
      if (names === undefined) hash[field] = onOneLine(value)
      else Object.assign(hash, named(field, names, await this.#unpackField(name, field)))
    }
    // A remembered reply is packed; its number says whose it is.
    if (/^@?client:/.test(part)) for (const slot in hash) hash[slot] = (hash[slot] as string).split('|')[0] as string
    return { ...content, hash }
  }

  async #unpackField(name: string, field: string): Promise<unknown[]> {
    const unpack = field === 'pace' ? "struct.unpack('<I4dI4I4dI4dd', value)" : 'cmsgpack.unpack(value)'
    const source = `local value = redis.call('HGET', KEYS[1], ARGV[1]) return cjson.encode({ ${unpack} })`
    return JSON.parse((await this.client.eval(source, 1, name, field)) as string)
  }
}

/** A fresh record with this payload. */
export function record(payload: unknown): string {
  return encodeRecord('rs', 'SEND', '', '', JSON.stringify(payload))
}

/** How a claim's jobs are told to be finished, all alike. */
export function finishedAs(claim: ClaimReply, finish: Finish, action?: FinishedInAction): ClaimRequest['finished'] {
  return jobsOf(claim).map(({ jobKey, standing }) => {
    const tenant = jobKey.split(':').at(-1) as string
    return { fence: claim.fence, jobKey, tenant, standing, finish, ...(action && { action }) }
  })
}

export function jobsOf(claim: ClaimReply): { jobKey: string; standing: Level; record: string }[] {
  return decodeJobs(claim.fence, claim.jobs, []).map(({ key, standing }, at) => {
    const text = claim.jobs[2 * at + 1] as string
    return { jobKey: key, standing, record: text.slice(text.startsWith('^') ? text.indexOf('\n') + 1 : 0) }
  })
}

/** What a claim got, in short: `a1 b1 a2`, by tenant and payload. */
export function shortly(claim: ClaimReply): string {
  return jobsOf(claim)
    .map(({ jobKey, record: text }) => jobKey.split(':').at(-1) + (text.split('\n').at(-1) ?? ''))
    .join(' ')
}

const plainRules = {
  type: 'SEND',
  level: 'normal',
  keepResults: false,
  failFast: false,
  maxFailureRatio: undefined,
  sealTimeoutMs: 0,
} as const

const emptyLine: SubmitLine = {
  tenant: 'a',
  level: 'normal',
  lane: 'default',
  basePriority: undefined,
  kind: 'fresh',
  entries: [],
}

const nameBySha = new Map(Object.values(scripts).map(({ sha, name }) => [sha as string, name as string]))

function metTooLate({ sha, declared, commands }: ScriptCall): string[] {
  const met = new Set(declared)
  const late: string[] = []
  let hasWritten = false
  for (const { name, isWrite, keys } of commands) {
    for (const key of keys) {
      if (hasWritten && !met.has(key)) late.push(`${nameBySha.get(sha) ?? sha}: ${name} ${key}`)
      met.add(key)
    }
    hasWritten ||= isWrite
  }
  return late
}

const levelFields = [
  'lanes',
  'sequence',
  'used',
  'received',
  'entitled',
  'virtual',
  'longest',
  'since',
  'score',
  'lane',
  'reached',
]

const actionFields = [
  ...['name', 'sealed', 'first', 'next', 'total', 'waiting', 'running', 'delayed', 'succeeded', 'failed', 'canceled'],
  ...['received', 'marks', 'created', 'started', 'ended', 'last_end', 'attempts', 'throttles', 'errors', 'notified'],
  ...['seen_at', 'seen_done', 'before_at', 'before_done', 'dropped'],
]

/** Fields that scripts pack, and the names of what is in them; none: it is one table, shown as JSON. */
const packedFields: Record<string, Record<string, readonly string[]>> = {
  queue: {
    settings: [],
    state: [
      ...['clock', 'fence', 'turns', 'restarts', 'restarted_at', 'waiting', 'delayed', 'running'],
      ...['running:high', 'running:normal', 'running:low'],
      ...['virtual:high', 'virtual:normal', 'virtual:low', 'weights:high', 'weights:normal', 'weights:low'],
      'canceling',
      ...['weights:parked', 'slot', 'starts', 'starts_before', 'starts_earlier', 'active_since', 'snapshot_due'],
      ...['entry:high', 'entry:normal', 'entry:low', 'round:high', 'round:normal', 'round:low'],
      ...['reached:high', 'reached:normal', 'reached:low'],
    ],
    pauses: [
      ...['paused', 'paused:high', 'paused:normal', 'paused:low'],
      ...['resumed', 'resumed:high', 'resumed:normal', 'resumed:low'],
    ],
  },
  '@limits': { 'gitlab/rule': [] },
  tenant: {
    limits: [],
    state: ['waiting', 'delayed', 'total', 'front', 'marks', 'throttled'],
    pace: ['slot', 'received', 'starts_before', 'starts_earlier', 'active_since', 'backoff', 'uncounted', 'costs'],
    high: levelFields,
    normal: levelFields,
    low: levelFields,
  },
  action: { rules: [], watchers: [], state: actionFields },
}

/** `{ 'state.waiting': 2, … }`; a 0 says as much as nothing. */
function named(field: string, names: readonly string[], values: readonly unknown[]): Record<string, string> {
  if (names.length === 0) return { [field]: JSON.stringify(sorted(values[0])) }
  const entries = names.map((name, at) => [`${field}.${name}`, values[at] ?? 0])
  return Object.fromEntries(entries.filter(([, value]) => value !== 0 && value !== ''))
}

/** The lines of a record, separated by bars. */
function onOneLine(text: string): string {
  return text.replaceAll('\n', '|')
}

function difference(before: Keyspace, after: Keyspace): Record<string, KeyChange> {
  const changes: Record<string, KeyChange> = {}
  for (const name of Object.keys(before)) if (!(name in after)) changes[name] = null
  for (const [name, content] of Object.entries(after)) {
    const change = changeOf(before[name], content)
    if (change !== undefined) changes[name] = change
  }
  return changes
}

function changeOf(before: KeyContent | undefined, after: KeyContent): KeyChange | undefined {
  if (JSON.stringify(sorted(before)) === JSON.stringify(sorted(after))) return undefined
  if ('string' in after) return after.string
  if ('list' in after) return after.list
  if ('set' in after) return after.set
  if ('stream' in after) return added(before, after.stream)
  const old = fieldsOf(before)
  const now = fieldsOf(after)
  const fields: Record<string, string | number | boolean | null> = {}
  for (const field of Object.keys(old)) if (!(field in now)) fields[field] = null
  for (const [field, value] of Object.entries(now)) if (old[field] !== value) fields[field] = value
  return fields
}

/** A stream only grows, except when it is trimmed: then it is shown whole. */
function added(before: KeyContent | undefined, after: readonly string[][]): string[] {
  const entries = after.map((fields) => fields.join(' '))
  const known = before !== undefined && 'stream' in before ? before.stream.map((fields) => fields.join(' ')) : []
  return known.every((entry, at) => entries[at] === entry) ? entries.slice(known.length) : entries
}

/** Fields and scores alike; whether the key expires is one more. */
function fieldsOf(content: KeyContent | undefined): Record<string, string | number | boolean> {
  if (content === undefined) return {}
  const ttl = content.ttl ? { '(expires)': true } : {}
  if ('hash' in content) return { ...content.hash, ...ttl }
  if ('zset' in content) return { ...content.zset, ...ttl }
  return ttl
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([name, each]) => [name, sorted(each)]))
}
