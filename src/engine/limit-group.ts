import type { Clock } from '../clock.ts'
import { type GroupKeys, groupKeys } from '../store/keys.ts'
import type { Redis } from '../store/redis.ts'
import { repeatWhileUnavailable } from '../store/repeat.ts'
import { READ_FOR_MS, Requests } from '../store/requests.ts'
import { registerLimits } from '../store/scripts/register-limits.ts'
import type { LimitRule } from '../store/settings.ts'

/** The shared limits of one hash tag, as this process uses them without a queue. */
export class LimitGroup {
  readonly name: string
  readonly clock: Clock
  readonly requests: Requests<GroupKeys>
  readonly #redis: Redis
  readonly #rules: Record<string, LimitRule> = {}
  #registered: Promise<void> | undefined
  /** As the store said; '' before the first registration has ended. */
  #knownSince = ''

  constructor(parts: { name: string; prefix: string; client: string; redis: Redis; clock: Clock }) {
    this.name = parts.name
    this.clock = parts.clock
    this.#redis = parts.redis
    this.requests = new Requests({
      client: parts.client,
      redis: parts.redis,
      keys: groupKeys(parts.prefix, parts.name, parts.client),
      register: () => this.#register(),
      knownSince: () => this.#knownSince,
    })
  }

  add(name: string, rule: LimitRule): void {
    this.#rules[name] = rule
    this.#registered = undefined
  }

  /** Registered once per process; again when the store turns out to have lost them. */
  ready(giveUpAfterMs?: number): Promise<void> {
    this.#registered ??= this.#register(giveUpAfterMs).catch((error: unknown) => {
      this.#registered = undefined
      throw error
    })
    return this.#registered
  }

  /**
   * The same for whoever only looks: without a connection it rejects when that has been waited for. Asks the store each time,
   * since registering may be under way for somebody who waits for longer.
   */
  async readable(): Promise<void> {
    const { groupLimits } = this.requests.keys
    await repeatWhileUnavailable(() => this.#redis.at(groupLimits).call('EXISTS', groupLimits), READ_FOR_MS)
    await this.ready()
  }

  /** A store that was emptied since the last time has forgotten what was granted: the limits close as after a restart. */
  async #register(giveUpAfterMs?: number): Promise<void> {
    const options = { knewSince: this.#knownSince, ...(giveUpAfterMs !== undefined && { giveUpAfterMs }) }
    this.#knownSince = await registerLimits(this.#redis, this.requests.keys, this.#rules, options)
  }
}
