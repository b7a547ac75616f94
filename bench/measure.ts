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
   * A measure that only waits (an idle process, a lease that runs out) takes minutes and no processor: it runs on
   * a Redis of its own beside the others.
   * @default false
   */
  readonly waitsInBackground?: boolean
  run(context: BenchContext): Promise<Figures>
}
