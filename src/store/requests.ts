import { OutcomeUnknownError, StoreUnavailableError } from '../errors.ts'
import type { GroupKeys, QueueKeys } from './keys.ts'
import type { Redis } from './redis.ts'
import { REPEATED_FOR_MS, repeatWhileUnavailable } from './repeat.ts'
import { isReadOnly, runScript, type Script, type ScriptValue } from './script.ts'
import {
  acquirePermits,
  acquireShared,
  admitJob,
  auditClaims,
  auditDelayed,
  auditPlaces,
  auditRunning,
  auditTenants,
  auditWaiting,
  finishAndClaim,
  freeTrash,
  learnLimit,
  learnShared,
  recordCongestion,
  settleDuty,
  takeAudit,
  takeDuty,
  takeSchedules,
  tickSchedules,
  watchAction,
} from './scripts.generated.ts'

// Scripts remember a client's last 16 requests (lua/requests.lua). One is repeated only while its reply is surely
// remembered: while fewer than 16 numbers were given after it, and for no longer than REPEATED_FOR_MS.
export const REMEMBERED = 16

// A read is repeated where the connection has just been lost. Without one it rejects when that has been waited for, as long as
// a command may take: whoever looks, mostly for a web request, wants to know.
export const READ_FOR_MS = 1_000

// A store that is emptied is told anew, and once more if that is emptied as well. One that does not know the queue even then
// lacks something that this process cannot give it.
const MOST_REGISTRATIONS = 5
const NOT_REGISTERED =
  'it does not know the queue, or a limit that it shares, although this process has just registered it. ' +
  'Keys may have been deleted by hand: restart a process that declares the shared limits'

/**
 * Calls that do not wait for replicas when `durability` is on. They are a worker's own: if one is lost in a failover the
 * lease runs out, and what it was about is done again. Waiting would cost every job a round trip more. Permits are for
 * now, and limits close after a failover; what an audit or a record of congestion missed, the next one has.
 */
const UNCONFIRMED: ReadonlySet<string> = new Set(
  [
    finishAndClaim,
    admitJob,
    takeDuty,
    settleDuty,
    watchAction,
    freeTrash,
    takeSchedules,
    tickSchedules,
    acquirePermits,
    acquireShared,
    learnLimit,
    learnShared,
    auditClaims,
    auditDelayed,
    auditPlaces,
    auditRunning,
    auditTenants,
    auditWaiting,
    takeAudit,
    recordCongestion,
  ].map(({ name }) => name),
)

interface CallOptions {
  readonly giveUpAfterMs?: number
  /** Aborted, the call is not sent any more; one that may have run by then is repeated until that is known. */
  readonly signal?: AbortSignal | undefined
}

/**
 * One client's calls of mutating scripts. Each has a number of its own and is repeated under it when the reply was
 * lost, so that nothing happens twice. A store that does not know the queue gets it registered, and the call again.
 */
export class Requests<Keys extends GroupKeys = QueueKeys> {
  readonly client: string
  readonly #anyNode: Redis
  #node: { readonly key: string; readonly redis: Redis } | undefined
  readonly #keys: Keys
  readonly #register: (isAgain: boolean) => Promise<void>
  readonly #knownSince: () => string
  readonly #unsettled = new Set<number>()
  #lastNumber = 0
  #waiting: (() => void)[] = []

  constructor(options: {
    client: string
    redis: Redis
    keys: Keys
    register: (isAgain: boolean) => Promise<void>
    knownSince?: () => string
  }) {
    this.client = options.client
    this.#anyNode = options.redis
    this.#keys = options.keys
    this.#register = options.register
    this.#knownSince = options.knownSince ?? (() => '')
  }

  /** The node that has the keys: they may move until the queue is registered. */
  get #redis(): Redis {
    const key = this.#keys.groupLimits
    if (this.#node?.key !== key) this.#node = { key, redis: this.#anyNode.at(key) }
    return this.#node.redis
  }

  get serverId(): string {
    return this.#redis.serverId
  }

  /** When the store came to know the queue, as it said when this process registered; '': it has not. */
  get knownSince(): string {
    return this.#knownSince()
  }

  get keys(): Keys {
    return this.#keys
  }

  /** @param args - Made anew for each try: the server's id may have changed in between. */
  async run<K extends { [Name in keyof K]: string }, A extends { [Name in keyof A]: ScriptValue }>(
    script: Script<K, A>,
    args: (request: number, serverId: string) => NoInfer<A>,
    options: CallOptions = {},
  ): Promise<readonly unknown[]> {
    for (let registered = 0; registered < MOST_REGISTRATIONS; registered++) {
      const reply = await this.#repeated(script, args, options)
      if (reply[0] !== 'unregistered') return reply
      await this.#register(true)
    }
    throw new StoreUnavailableError({ reason: NOT_REGISTERED, outcome: 'not-sent' })
  }

  /** What only reads needs no number, and does not wait for those that others have. */
  #repeated<K extends { [Name in keyof K]: string }, A extends { [Name in keyof A]: ScriptValue }>(
    script: Script<K, A>,
    args: (request: number, serverId: string) => A,
    options: CallOptions,
  ): Promise<readonly unknown[]> {
    if (!isReadOnly(script)) return this.#numbered(script, args, options)
    const read = async () => {
      await this.#redis.ready()
      const reply = await runScript(this.#redis, script, this.#keys as unknown as K, args(0, this.#redis.serverId))
      return reply as readonly unknown[]
    }
    return repeatWhileUnavailable(read, options.giveUpAfterMs ?? READ_FOR_MS)
  }

  async #numbered<K extends { [Name in keyof K]: string }, A extends { [Name in keyof A]: ScriptValue }>(
    script: Script<K, A>,
    args: (request: number, serverId: string) => A,
    { giveUpAfterMs = REPEATED_FOR_MS, signal }: CallOptions,
  ): Promise<readonly unknown[]> {
    const number = await this.#nextNumber()
    let mayHaveRun = false
    const attempt = async () => {
      try {
        await this.#redis.ready()
        if (!mayHaveRun) signal?.throwIfAborted()
        // Every key a script can declare is among the queue's, or the group's; the script picks its own by name.
        const keys = this.#keys as unknown as K
        const { serverId } = this.#redis
        const reply = await runScript(this.#redis, script, keys, args(number, serverId))
        if (waitsForReplicas(script)) await this.#confirm(serverId)
        return reply as readonly unknown[]
      } catch (error) {
        mayHaveRun ||= error instanceof StoreUnavailableError && error.outcome === 'unknown'
        throw error
      }
    }
    try {
      return await repeatWhileUnavailable(attempt, Math.min(giveUpAfterMs, REPEATED_FOR_MS))
    } catch (error) {
      if (mayHaveRun && error instanceof StoreUnavailableError)
        throw new OutcomeUnknownError({ operation: script.name, cause: error })
      throw error
    } finally {
      this.#settle(number)
    }
  }

  /** After a failover in between, the call is repeated: the new server knows its number, or has to do it again. */
  async #confirm(serverId: string): Promise<void> {
    if (await this.#redis.confirm(this.#keys.client, serverId)) return
    const reason = 'another server took over before the replicas were known to have it'
    throw new StoreUnavailableError({ reason, outcome: 'unknown' })
  }

  async #nextNumber(): Promise<number> {
    while (this.#lastNumber + 1 - this.#oldest() >= REMEMBERED) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
    this.#lastNumber += 1
    this.#unsettled.add(this.#lastNumber)
    return this.#lastNumber
  }

  /** Numbers are added in order, so the first of the set is the oldest. */
  #oldest(): number {
    const first = this.#unsettled.values().next()
    return first.done ? this.#lastNumber + 1 : first.value
  }

  #settle(number: number): void {
    this.#unsettled.delete(number)
    const waiting = this.#waiting
    this.#waiting = []
    for (const wake of waiting) wake()
  }
}

function waitsForReplicas({ name }: { readonly name: string }): boolean {
  return !UNCONFIRMED.has(name)
}
