import type { Redis } from 'ioredis'
import type { TestRedis } from '../src/testing/redis-server.ts'

/** What a measure hands back: raw figures of every side and the ratios made of them, under the names of the JSON line. */
export type Figures = Record<string, number>

export interface BenchContext {
  /** Smaller sizes and fewer rounds; the same figures. */
  readonly quick: boolean
  /** The one Redis of this measure: every side of it runs here, in turn. */
  readonly redis: TestRedis
  /** For INFO and the like; no side uses it. */
  readonly meter: Redis
}

export interface Measure {
  /** What `--only` takes. */
  readonly name: string
  readonly title: string
  /**
   * What may go on at the same time. A measure of speed runs alone. One that only waits (an idle process, a lease that
   * runs out) takes minutes and no processor: it waits beside all others. One that counts (bytes, shares of jobs) gives
   * the same figures on a busy machine: the quick bench runs all of these together, the long one each alone.
   * @default 'speed'
   */
  readonly kind?: 'speed' | 'counting' | 'waiting'
  run(context: BenchContext): Promise<Figures>
}
