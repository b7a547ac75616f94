import type { Product } from '../sides/limited.ts'

/** What the bench and its child processes say to each other. */

export interface LimitedRun {
  product: Product
  redisPath: string
  queue: string
  limitPerSecond: number
  upstreamPort: number
  /** Under which the upstream counts this run. */
  channel: number
}

export type ToLimitedWorker = { kind: 'start'; run: LimitedRun } | { kind: 'stop'; channel: number }
export type FromLimitedWorker =
  | { kind: 'ready' }
  | { kind: 'started'; channel: number }
  | { kind: 'stopped'; channel: number }

export type ToUpstream = { kind: 'report'; channel: number }
export type FromUpstream =
  | { kind: 'ready'; port: number }
  /** Instants of the recorder's own clock. */
  | { kind: 'report'; channel: number; arrivalsMs: number[]; nowMs: number }

export type FromHangingWorker = { kind: 'ready' } | { kind: 'jobStarted' }

export interface ToFloodProducer {
  floodJobs: number
}
export type FromFloodProducer =
  | { kind: 'ready' }
  /** A quarter of the flood is in, and it goes on. */
  | { kind: 'flooding' }
  | { kind: 'submitted'; seconds: number; growthMegabytes: number }

/** Instants are those of `monotonicMs`. */
export type ToFloodWorker = { kind: 'expect'; smallJobs: number } | { kind: 'report'; sinceMs: number }
export type FromFloodWorker =
  | { kind: 'ready' }
  | { kind: 'smallTenantsFinished' }
  /**
   * Jobs of any tenant that ran until the small tenants had finished: from the asked instant on, and of the small tenant
   * with the most of them, from when Redis had its jobs.
   */
  | { kind: 'report'; ran: number; ranSinceStored: number; seconds: number }
