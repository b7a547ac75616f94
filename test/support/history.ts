import { closeSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/**
 * What happened, as each process saw it. Jobs go by the name the test gave them (in the payload), so that a job that
 * was stored twice shows as one name with two lives.
 */
export type Happening =
  /** A producer asks for jobs to be stored, and what it learned: stored, refused, or nothing. */
  | { kind: 'submit'; phase: 'invoke'; call: number; jobs: readonly SubmittedJob[] }
  | { kind: 'submit'; phase: 'ok' | 'unknown' | 'fail'; call: number }
  /** A lease of a job, as its holder learned of it. `from` and `until` are Redis times, where they are known. */
  | { kind: 'claim'; job: string; fence: string; from?: number; until?: number }
  | { kind: 'renew'; job: string; fence: string; until?: number }
  /** A handler begins and ends. */
  | { kind: 'start'; job: string; tenant: string; fence: string }
  | { kind: 'end'; job: string; fence: string; result: HandlerResult }
  /** The outside world was touched: from arrival at the upstream to its answer. */
  | { kind: 'effect'; job: string; tenant: string; fence: string; until: number }
  /** What the store answered to the end of a job under a fence. */
  | { kind: 'outcome'; job: string; fence: string; result: HandlerResult; answer: 'accepted' | 'stale' | 'unknown' }
  /** A fault begins and ends. `worker` names a process whose leases may be lost by it. */
  | { kind: 'nemesis'; phase: 'begin' | 'end'; fault: string; worker?: string }
  /** The state of a job when all is done, and the queue's own counts. */
  | { kind: 'final'; job: string; state: JobState }
  | { kind: 'counts'; counts: Readonly<Record<string, number>> }

export interface SubmittedJob {
  job: string
  tenant: string
  /** Under which the queue knows it, where the caller chose it. */
  id?: string
  /** Jobs of one lane start in the order of their submission; those of an ordered one also wait for each other. */
  lane?: string
  ordered?: boolean
  delayMs?: number
}

/** `released` and `throttled` give the job back to be run again; so does `failed`, unless its retries are used up. */
export type HandlerResult = 'succeeded' | 'failed' | 'dead' | 'throttled' | 'released'

export type JobState = 'waiting' | 'delayed' | 'running' | 'succeeded' | 'failed' | 'canceled' | 'unknown'

/** A happening with the process that saw it and when: milliseconds of CLOCK_MONOTONIC, one clock for all processes. */
export type HistoryEvent = Happening & { process: string; sequence: number; at: number }

export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

/**
 * Writes one process's part of a history, each event before the process goes on: what is written survives a kill −9,
 * because the page cache does.
 */
export class HistoryRecorder {
  readonly process: string
  readonly #file: number
  #sequence = 0

  constructor(folder: string, processName: string) {
    this.process = processName
    this.#file = openSync(join(folder, `${processName}.jsonl`), 'a')
  }

  record(happening: Happening, at = now()): void {
    const event: HistoryEvent = { ...happening, process: this.process, sequence: ++this.#sequence, at }
    writeSync(this.#file, `${JSON.stringify(event)}\n`)
  }

  close(): void {
    closeSync(this.#file)
  }
}

/** All parts of a history in a folder, in the order of time. */
export function readHistory(folder: string): HistoryEvent[] {
  const events = readdirSync(folder)
    .filter((name) => name.endsWith('.jsonl'))
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n').filter(Boolean))
    .map((line) => JSON.parse(line) as HistoryEvent)
  return inOrder(events)
}

export function inOrder(events: readonly HistoryEvent[]): HistoryEvent[] {
  return [...events].sort((a, b) => a.at - b.at || a.sequence - b.sequence)
}

/** Jobs that a handler was given more than once. */
export function runAgain(history: readonly HistoryEvent[]): string[] {
  const seen = new Set<string>()
  return history.flatMap((event) => {
    if (event.kind !== 'start') return []
    if (seen.has(event.job)) return [event.job]
    seen.add(event.job)
    return []
  })
}
