import type { TestRedis } from '../../src/testing/redis-server.ts'
import type { ScenarioContext } from '../scenario.ts'

/** A job's payload in a record, as MONITOR shows it: quotes may be escaped. */
const NAME = /\bname\\*":\\*"([^"\\]+)/g

/** When Redis stored jobs, by its own clock: what a scheduler may be held to starts there, not with the way to it. */
export class Acceptances {
  readonly #atMs = new Map<string, number>()

  /** Sees every job from now on whose name begins so. */
  static async watch({ onEnd }: ScenarioContext, redis: TestRedis, prefix: string): Promise<Acceptances> {
    const acceptances = new Acceptances()
    const monitor = await redis.client().monitor()
    onEnd(() => monitor.disconnect())
    monitor.on('monitor', (seconds: string, [command = '', ...values]: string[], source: string) => {
      if (source !== 'lua' || command.toLowerCase() !== 'rpush') return
      for (const value of values)
        for (const [, name = ''] of value.matchAll(NAME))
          if (name.startsWith(prefix)) acceptances.#atMs.set(name, Number(seconds) * 1_000)
    })
    return acceptances
  }

  private constructor() {}

  /** In milliseconds since 1970; undefined for one that was not watched. */
  of(name: string): number | undefined {
    return this.#atMs.get(name)
  }
}
