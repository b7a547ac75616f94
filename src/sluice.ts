import { randomBytes } from 'node:crypto'
import { callback, checkOptions, group, optional, type Report, show, text } from './assert.ts'
import { WebhookTeller } from './bulk/webhooks.ts'
import { type Clock, isTestClock, systemClock, type TestClock } from './clock.ts'
import type { Action } from './engine/actions/action.ts'
import { IdlePace } from './engine/idle-pace.ts'
import { LimitGroup } from './engine/limit-group.ts'
import { guardedLog, type Log, logToStderr } from './engine/log.ts'
import { Queue } from './engine/queue.ts'
import { type QueueOptions, queueNameRule } from './engine/queue-options.ts'
import { checkDefinition, SharedLimit } from './engine/shared-limit.ts'
import { addSharedLimit, SharedLimits } from './engine/shared-limits.ts'
import { StoreWatch } from './engine/store-watch.ts'
import { Waker } from './engine/waker.ts'
import { ClosedError, InvalidOptionsError } from './errors.ts'
import type { LimitDefinition } from './limits/definition.ts'
import { ClockedRedis } from './store/clocked-redis.ts'
import { fromToken } from './store/names.ts'
import { connectRedis, type Redis, type RedisOptions, redisRules } from './store/redis.ts'

export interface SluiceOptions extends RedisOptions {
  /**
   * Starts every key. Two prefixes on one Redis do not see each other.
   * @default 'sluice'
   */
  prefix?: string
  /**
   * Gets what an operator should know. An entry at which it throws goes to standard error.
   * @default one line on standard error
   */
  log?: Log
  /**
   * For tests: time that moves only when the test says so, for this process and for what it asks of Redis. Made by
   * `manualClock()` of sluice/testing. All that use the same Redis need the same clock.
   * @default the time of the machine, and of Redis
   */
  clock?: TestClock
  webhooks?: {
    /**
     * Addresses and ranges (`10.0.0.0/8`) at which webhooks of actions may be although they are not public.
     * @default none
     */
    allowPrivate?: readonly string[]
  }
}

export const sluiceRules = {
  ...redisRules,
  prefix: text({
    maxLength: 64,
    pattern: { test: /^[A-Za-z0-9._-]+$/, words: 'letters, digits, ".", "_" and "-"' },
    default: 'sluice',
  }),
  log: optional(callback<Log>()),
  clock: optional((value: unknown, path: string, report: Report) => {
    if (!isTestClock(value)) report(path, `must be a clock of sluice/testing, manualClock(), not ${show(value)}`)
    return value as TestClock
  }),
  // Checked by whoever makes calls with it.
  webhooks: group({ allowPrivate: (value: unknown) => value as readonly string[] | undefined }),
}

export interface LimitOptions {
  /**
   * The hash tag of the limit and of the queues that share it. Limits that one queue shares need the same.
   * @default the limit's name
   */
  group?: string
}

const limitNameRule = text({
  maxLength: 64,
  pattern: { test: /^[A-Za-z0-9_-]+$/, words: 'letters, digits, "_" and "-"' },
})

const limitRules = {
  group: optional(
    text({ maxLength: 64, pattern: { test: /^[A-Za-z0-9._-]+$/, words: 'letters, digits, ".", "_" and "-"' } }),
  ),
}

function wrong(subject: string, path: string, problem: string): InvalidOptionsError {
  return new InvalidOptionsError(subject, [{ path, problem }])
}

/** Unique per process and queue, and not guessable from a pid that comes again. */
function newClient(): string {
  return `${process.pid.toString(36)}-${randomBytes(6).toString('hex')}`
}

/** Where a Sluice keeps what it keeps. */
export interface Store {
  readonly redis: Redis
  readonly prefix: string
}

/** For parts of this package that keep something beside the queues, such as the server's audit log. */
export let storeOf: (sluice: Sluice) => Store

/**
 * A queue that somebody else has declared, to look at and to act on as an operator does. Declaring it here as well would
 * make it known where nobody has it, and what options say would take the place of what its workers say.
 * @param options - As its workers have them, if they are known.
 */
export let observeQueue: (sluice: Sluice, name: string, options?: QueueOptions) => Queue

/** The door to everything: one per process, closed at its end. Connects by itself, and again whenever it must. */
export class Sluice {
  /** Limits made with `limit`, for code that has no queue. */
  readonly limits: SharedLimits
  readonly #clock: Clock
  readonly #redis: Redis
  readonly #waker: Waker
  readonly #pace = new IdlePace()
  readonly #prefix: string
  readonly #log: Log
  readonly #webhooks: WebhookTeller
  readonly #queues = new Map<string, Queue>()
  readonly #groups = new Map<string, LimitGroup>()
  #leaveClock = () => {}
  #closed: Promise<void> | undefined

  static {
    storeOf = (sluice) => ({ redis: sluice.#redis, prefix: sluice.#prefix })
    observeQueue = (sluice, name, options) => sluice.#makeQueue(name, options, { isObserver: true })
  }

  constructor(options: SluiceOptions) {
    const { prefix, log, clock, webhooks, ...redis } = checkOptions('Sluice', options, sluiceRules)
    this.#prefix = prefix
    this.#log = log ? guardedLog(log) : logToStderr
    this.limits = new SharedLimits(this.#log)
    this.#webhooks = new WebhookTeller(webhooks.allowPrivate ? { allowPrivate: webhooks.allowPrivate } : {})
    const opened = connectRedis(redis, new StoreWatch(this.#log))
    this.#clock = clock ?? systemClock
    this.#redis = clock ? this.#liveBy(clock, opened) : opened
    this.#waker = new Waker(this.#redis, { log: this.#log })
  }

  #liveBy(clock: TestClock, opened: Redis): Redis {
    const redis = new ClockedRedis(opened, clock)
    this.#leaveClock = clock.join(redis)
    return redis
  }

  /**
   * The queue of this name. Options are given the first time; the same queue is answered after that. Shared options that are
   * not given stay as other processes have declared them.
   */
  queue(name: string, options?: QueueOptions): Queue {
    if (this.#closed) throw new ClosedError('This Sluice')
    const known = this.#queues.get(name)
    if (known && options === undefined) return known
    if (known) throw wrong(`queue "${name}"`, 'options', 'are given already: give them once, where the queue is made')
    return this.#makeQueue(name, options, { isObserver: false })
  }

  #makeQueue(name: string, options: QueueOptions | undefined, { isObserver }: { isObserver: boolean }): Queue {
    checkOptions('queue', { name }, { name: queueNameRule })
    const queue = new Queue({
      name,
      options,
      isObserver,
      prefix: this.#prefix,
      redis: this.#redis,
      waker: this.#waker,
      pace: this.#pace,
      clock: this.#clock,
      log: this.#log,
      tellWebhook: this.#webhooks.tell,
      client: newClient(),
    })
    this.#queues.set(name, queue)
    return queue
  }

  /** The shared limit that was made under this name. */
  limit(name: string): SharedLimit
  /**
   * Makes a limit that queues and code without one can share: attach it with `limits: { upstream: limit }`, or ask it with
   * `acquire`. Its queues live under the hash tag of its group; limits that one queue is to share need the same group.
   */
  limit(name: string, definition: LimitDefinition, options?: LimitOptions): SharedLimit
  limit(name: string, definition?: LimitDefinition, options?: LimitOptions): SharedLimit {
    if (this.#closed) throw new ClosedError('This Sluice')
    const known = this.limits.get(name)
    if (known && definition === undefined) return known
    if (known) throw wrong(`limit "${name}"`, 'definition', 'is given already: give it once, where the limit is made')
    if (definition === undefined)
      throw wrong(`limit "${name}"`, 'definition', 'is required: there is no such limit yet')
    checkOptions('limit', { name }, { name: limitNameRule })
    const checked = checkOptions(`limit "${name}"`, options, limitRules)
    const rule = checkDefinition(name, definition)
    const group = this.#group(checked.group ?? name)
    group.add(name, rule)
    const limit = new SharedLimit({ name, rule, group, limits: this.limits })
    addSharedLimit(this.limits, limit, group)
    return limit
  }

  #group(name: string): LimitGroup {
    const known = this.#groups.get(name)
    if (known) return known
    const group = new LimitGroup({
      name,
      prefix: this.#prefix,
      client: newClient(),
      redis: this.#redis,
      clock: this.#clock,
    })
    this.#groups.set(name, group)
    return group
  }

  /**
   * A bulk action by its full id, `<queue>:<tenant>:<name>`; undefined if the id has another form or its queue was not made
   * here: an action is asked through its queue. `sluice.queue(name)` is enough, and changes nothing of the queue.
   */
  action(id: string): Action | undefined {
    const [queue, tenant, name, ...rest] = id.split(':')
    if (queue === undefined || !tenant || !name || rest.length > 0) return undefined
    try {
      return this.#queues.get(queue)?.action(fromToken(name), { tenant: fromToken(tenant) })
    } catch {
      // Not the escapes that an id of ours has.
      return undefined
    }
  }

  /** Resolves when Redis answers and may be used; rejects with the reason otherwise. */
  ready(): Promise<void> {
    return this.#redis.ready()
  }

  /** Lets running jobs end within their grace, gives back the others and disconnects. Called again, it waits for the same. */
  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()))
    this.#webhooks.close()
    this.#leaveClock()
    await this.#waker.close()
    await this.#redis.close()
  }
}
