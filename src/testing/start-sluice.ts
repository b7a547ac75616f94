import { randomBytes } from 'node:crypto'
import { Sluice, type SluiceOptions } from '../sluice.ts'
import { type ManualClock, manualClock } from './manual-clock.ts'
import { startRedis, type TestRedis } from './redis-server.ts'

/** What `new Sluice` takes, but for where its Redis is. */
export interface StartSluiceOptions extends Partial<Omit<SluiceOptions, 'redis' | 'clock'>> {
  /** A server that several tests share; each gets a prefix of its own, and leaves it running. @default one of its own */
  redis?: TestRedis
  /** A clock that others have too. @default one of its own */
  clock?: ManualClock
}

/** A Sluice for one test or one file of tests, with a Redis nobody else uses and time that stands still. */
export interface TestSluice extends AsyncDisposable {
  readonly sluice: Sluice
  readonly clock: ManualClock
  readonly redis: TestRedis
  /** Closes it, without waiting for anything that the clock would have to bring, and stops its Redis. */
  close(): Promise<void>
}

/** Starts a private Redis and a Sluice on it that goes by a manual clock. Both are gone with the process at the latest. */
export async function startSluice(options: StartSluiceOptions = {}): Promise<TestSluice> {
  const { redis: shared, clock = manualClock(), ...rest } = options
  const redis = shared ?? (await startRedis())
  const stop = async () => {
    if (!shared) await redis.stop()
  }
  try {
    const sluice = new Sluice({ prefix: `test-${randomBytes(4).toString('hex')}`, ...rest, redis: redis.path, clock })
    const close = () => clock.runUntil(sluice.close()).finally(stop)
    return { sluice, clock, redis, close, [Symbol.asyncDispose]: close }
  } catch (error) {
    await stop()
    throw error
  }
}
