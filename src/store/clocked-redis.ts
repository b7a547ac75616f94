import { setImmediate as turn } from 'node:timers/promises'
import type { Clock, ClockDweller } from '../clock.ts'
import type { RedisArgument } from './command.ts'
import type { Redis } from './redis-port.ts'
import type { ScriptTimes } from './script-times.ts'

// What a reply sets off goes on in the same turn of the event loop or in one of the next; whoever gathers work takes one more.
const TURNS = 4

/** Calls of all connections of one store. */
class Traffic {
  #inFlight = 0
  #begun = 0
  #onQuiet: (() => void)[] = []

  /** How many were begun so far. */
  get begun(): number {
    return this.#begun
  }

  async count<T>(call: Promise<T>): Promise<T> {
    this.#begun += 1
    this.#inFlight += 1
    try {
      return await call
    } finally {
      this.#inFlight -= 1
      if (this.#inFlight === 0) for (const wake of this.#onQuiet.splice(0)) wake()
    }
  }

  async quiet(): Promise<void> {
    while (this.#inFlight > 0) await new Promise<void>((resolve) => this.#onQuiet.push(resolve))
  }
}

/**
 * A store whose scripts go by the clock of a test, and of which one can say when it is at rest. What Redis does by itself,
 * such as expiring keys, still goes by its own time.
 */
export class ClockedRedis implements Redis, ClockDweller {
  readonly #redis: Redis
  readonly #clock: Pick<Clock, 'date'>
  readonly #traffic: Traffic
  /** The same wrapping for the same connection: whoever sorts by connection must find it again. */
  readonly #wrapped: WeakMap<Redis, ClockedRedis>

  constructor(
    redis: Redis,
    clock: Pick<Clock, 'date'>,
    family: { traffic: Traffic; wrapped: WeakMap<Redis, ClockedRedis> } = {
      traffic: new Traffic(),
      wrapped: new WeakMap(),
    },
  ) {
    this.#redis = redis
    this.#clock = clock
    this.#traffic = family.traffic
    this.#wrapped = family.wrapped
    this.#wrapped.set(redis, this)
  }

  /**
   * Resolves when no call is under way, nothing that was woken by one has still to begin another, and no wake-up is on its
   * way. False: it was so already.
   */
  async settle(): Promise<boolean> {
    const before = this.#traffic.begun
    for (;;) {
      await this.#traffic.quiet()
      // Whoever was only waiting for its connection sends now that it blocks.
      await turn()
      const { begun } = this.#traffic
      // The server answers those who block on a list in the round in which it reads this, but perhaps a hair later: by the
      // second answer theirs are here. One that is closed meanwhile, or away, has nothing more to say.
      for (let rounds = 0; rounds < 2; rounds++) await this.#redis.callEach('PING').catch(() => {})
      for (let turns = 0; turns < TURNS; turns++) await turn()
      if (this.#traffic.begun === begun) return begun !== before
    }
  }

  get serverId(): string {
    return this.#redis.serverId
  }

  get nowUs(): string {
    return String(Math.round(this.#clock.date() * 1_000))
  }

  get scriptTimes(): ScriptTimes | undefined {
    return this.#redis.scriptTimes
  }

  call(command: string, ...args: RedisArgument[]): Promise<unknown> {
    return this.#traffic.count(this.#redis.call(command, ...args))
  }

  callWith(command: string, args: readonly RedisArgument[]): Promise<unknown> {
    return this.#traffic.count(this.#redis.callWith(command, args))
  }

  /** Counted until it can be sent: whoever blocks waits for others then. */
  async block(command: string, args: readonly RedisArgument[], timeoutMs: number): Promise<unknown> {
    await this.#traffic.count(this.#redis.ready())
    return this.#redis.block(command, args, timeoutMs)
  }

  ready(): Promise<void> {
    return this.#redis.ready()
  }

  onReconnect(listener: (serverId: string) => void): () => void {
    return this.#redis.onReconnect(listener)
  }

  duplicate(): Redis {
    return this.#wrap(this.#redis.duplicate())
  }

  at(key: string): Redis {
    return this.#wrap(this.#redis.at(key))
  }

  callEach(command: string, ...args: RedisArgument[]): Promise<unknown[]> {
    return this.#traffic.count(this.#redis.callEach(command, ...args))
  }

  confirm(key: string, serverId: string): Promise<boolean> {
    return this.#traffic.count(this.#redis.confirm(key, serverId))
  }

  close(): Promise<void> {
    return this.#redis.close()
  }

  #wrap(redis: Redis): Redis {
    return (
      this.#wrapped.get(redis) ??
      new ClockedRedis(redis, this.#clock, { traffic: this.#traffic, wrapped: this.#wrapped })
    )
  }
}
