import { abortSignal, checkOptions, optional } from '../assert.ts'
import { systemClock } from '../clock.ts'
import { nameRule } from '../store/names.ts'
import { repeatWhileUnavailable } from '../store/repeat.ts'
import { pauseFor } from './pause-for.ts'
import type { Queue } from './queue.ts'
import { unlessAborted } from './unless-aborted.ts'

export interface DrainOptions {
  /** Only the work of this tenant. */
  tenant?: string
  /** Ends the waiting; the work goes on. */
  signal?: AbortSignal
}

type Counts = Record<'waiting' | 'delayed' | 'running', number>

const rules = { tenant: optional(nameRule), signal: optional(abortSignal) }

// One cheap request; whoever drains a queue waits for seconds or hours.
const LOOK_EVERY_MS = 250

/** Looks at the counts until there is nothing left to do. */
export async function waitUntilDrained(queue: Queue, options: DrainOptions): Promise<void> {
  const { tenant, signal } = checkOptions('drain', options, rules)
  for (;;) {
    signal?.throwIfAborted()
    const look = (): Promise<Counts> => (tenant === undefined ? queue.counts() : queue.tenant(tenant).view())
    const { waiting, delayed, running } = await unlessAborted(repeatWhileUnavailable(look), signal)
    if (waiting + delayed + running === 0) return
    await pauseFor(systemClock, LOOK_EVERY_MS, signal)
  }
}
