import { randomBytes } from 'node:crypto'
import { callback, checkOptions, group, optional, text } from './assert.ts'
import { WebhookTeller } from './bulk/webhooks.ts'
import { systemClock } from './clock.ts'
import type { Action } from './engine/actions/action.ts'
import { type Log, logToStderr } from './engine/log.ts'
import { Queue } from './engine/queue.ts'
import { type QueueOptions, queueNameRule } from './engine/queue-options.ts'
import { Waker } from './engine/waker.ts'
import { ClosedError } from './errors.ts'
import { fromToken } from './store/names.ts'
import { openRedis, type Redis, type RedisOptions, redisRules } from './store/redis.ts'

export interface SluiceOptions extends RedisOptions {
  /**
   * Starts every key. Two prefixes on one Redis do not see each other.
   * @default 'sluice'
   */
  prefix?: string
  /**
   * Gets what an operator should know.
   * @default one line on standard error
   */
  log?: Log
  webhooks?: {
    /**
     * Addresses and ranges (`10.0.0.0/8`) at which webhooks of actions may be although they are not public.
     * @default none
     */
    allowPrivate?: readonly string[]
  }
}

const sluiceRules = {
  ...redisRules,
  prefix: text({
    maxLength: 64,
    pattern: { test: /^[A-Za-z0-9._-]+$/, words: 'letters, digits, ".", "_" and "-"' },
    default: 'sluice',
  }),
  log: optional(callback<Log>()),
  // Checked by whoever makes calls with it.
  webhooks: group({ allowPrivate: (value: unknown) => value as readonly string[] | undefined }),
}

/** Where a Sluice keeps what it keeps. */
export interface Store {
  readonly redis: Redis
  readonly prefix: string
}

/** For parts of this package that keep something beside the queues, such as the server's audit log. */
export let storeOf: (sluice: Sluice) => Store

/** The door to everything: one per process, closed at its end. Connects by itself, and again whenever it must. */
export class Sluice {
  readonly #redis: Redis
  readonly #waker: Waker
  readonly #prefix: string
  readonly #log: Log
  readonly #webhooks: WebhookTeller
  readonly #queues = new Map<string, Queue>()
  #isClosed = false

  static {
    storeOf = (sluice) => ({ redis: sluice.#redis, prefix: sluice.#prefix })
  }

  constructor(options: SluiceOptions) {
    const { prefix, log, webhooks, ...redis } = checkOptions('Sluice', options, sluiceRules)
    this.#prefix = prefix
    this.#log = log ?? logToStderr
    this.#webhooks = new WebhookTeller(webhooks.allowPrivate ? { allowPrivate: webhooks.allowPrivate } : {})
    this.#redis = openRedis(redis as RedisOptions)
    this.#waker = new Waker(this.#redis)
  }

  /** The queue of this name. Options are given the first time; the same queue is answered after that. */
  queue(name: string, options?: QueueOptions): Queue {
    if (this.#isClosed) throw new ClosedError('This Sluice')
    const known = this.#queues.get(name)
    if (known && options === undefined) return known
    if (known) throw new TypeError(`Queue "${name}" has its options already: give them once, where it is made.`)
    checkOptions('queue', { name }, { name: queueNameRule })
    const queue = new Queue({
      name,
      options,
      prefix: this.#prefix,
      redis: this.#redis,
      waker: this.#waker,
      clock: systemClock,
      log: this.#log,
      tellWebhook: this.#webhooks.tell,
      // Unique per process and queue, and not guessable from a pid that comes again.
      client: `${process.pid.toString(36)}-${randomBytes(6).toString('hex')}`,
    })
    this.#queues.set(name, queue)
    return queue
  }

  /**
   * A bulk action by its full id, `<queue>:<tenant>:<name>`; undefined if the id has another form or its queue was not made
   * here.
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

  /** Lets running jobs end within their grace, gives back the others and disconnects. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()))
    this.#webhooks.close()
    await this.#waker.close()
    await this.#redis.close()
  }
}
