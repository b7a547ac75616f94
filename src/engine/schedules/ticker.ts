import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../clock.ts'
import { fromToken } from '../../store/names.ts'
import type { Requests } from '../../store/requests.ts'
import type { StoredSchedule } from '../../store/scripts/read-schedules.ts'
import { takeSchedules } from '../../store/scripts/take-schedules.ts'
import { type Tick, type TickReply, tickSchedules } from '../../store/scripts/tick-schedules.ts'
import { LAST_WORDS_MS, settledWithin } from '../last-words.ts'
import type { Log, LogEvent } from '../log.ts'
import { Packer } from '../submission.ts'
import { planTicks } from './missed.ts'
import { type Definition, jobIdOf } from './schedule-input.ts'
import { type Timetable, timetableOf } from './timetable.ts'

// Whoever dies with ticks in hand makes them this late. Somebody who takes longer loses nothing but its work.
const LEASE_MS = 2_000
// Taken, and ticked, in one call: its script must be short. A tick takes it about as long as a job with an id.
const SCHEDULES_AT_ONCE = 32
const JOBS_AT_ONCE = 100
const BYTES_AT_ONCE = 512_000
const WORKED_OUT_FOR_MS = LEASE_MS / 4
const RETRY_MS = 1_000
// A definition that this version cannot read is tried again by whoever has another.
const UNREADABLE_AGAIN_MS = 60_000
// A timer may fire a millisecond early; an instant that is not over yet would be looked at in vain.
const SLACK_MS = 1
const TIMETABLES_KEPT = 1_000
const SAID_AGAIN_MS = 60_000

/**
 * Makes jobs of the ticks of schedules. Any process that works for the queue does so when a claim says that schedules are
 * due; the one that did so last looks at the next instant by itself, also while all its hands are busy.
 */
export class Ticker {
  readonly #queue: string
  readonly #requests: Requests
  readonly #clock: Clock
  readonly #log: Log
  /** Payloads were checked when the schedule was made, perhaps by a process that allows larger ones. */
  readonly #packer = new Packer({}, Number.MAX_SAFE_INTEGER)
  readonly #timetables = new Map<string, Timetable>()
  #running: Promise<void> | undefined
  #looksAgain = false
  #cancelTimer: (() => void) | undefined
  #saidFullAt = Number.NEGATIVE_INFINITY
  #isClosed = false

  constructor(parts: { name: string; requests: Requests; clock: Clock; log: Log }) {
    this.#queue = parts.name
    this.#requests = parts.requests
    this.#clock = parts.clock
    this.#log = parts.log
  }

  /** Schedules are due. */
  look(): void {
    if (this.#isClosed) return
    this.#looksAgain = true
    this.#running ??= this.#tickAll()
      .catch((error: unknown) => {
        this.#warn('schedules.failed', 'Schedules that are due could not be looked after; they are again.', error)
        this.#lookAfter(RETRY_MS)
      })
      .finally(() => {
        this.#running = undefined
      })
  }

  /** What was taken is left to others, after its lease. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelTimer?.()
    await settledWithin(this.#running, LAST_WORDS_MS)
  }

  async #tickAll(): Promise<void> {
    while (this.#looksAgain && !this.#isClosed) {
      this.#looksAgain = false
      for (let fence = ''; !this.#isClosed; ) {
        const taken = await takeSchedules(this.#requests, { leaseMs: LEASE_MS, most: SCHEDULES_AT_ONCE, fence })
        if (!taken) break
        for (const name of taken.lost) {
          this.#warn('schedule.gone', `The schedule "${fromToken(name)}" was lost by Redis, all but its name.`)
        }
        const ticks = await this.#workOut(taken.schedules, Number(taken.nowUs) / 1_000)
        const reply = await tickSchedules(this.#requests, ticks, { leaseMs: LEASE_MS })
        this.#onReply(reply)
        if (reply.fence === '') break
        fence = reply.fence
      }
    }
  }

  #onReply({ waitMs, words }: TickReply): void {
    if (waitMs !== undefined) this.#lookAfter(waitMs + SLACK_MS)
    if (!words.includes('full') || this.#clock.now() - this.#saidFullAt < SAID_AGAIN_MS) return
    this.#saidFullAt = this.#clock.now()
    this.#warn('schedules.full', 'Ticks wait because the queue, or a tenant, takes no more jobs (maxPending).')
  }

  /** As many as fit in one call and can be worked out well within the lease. */
  async #workOut(schedules: readonly StoredSchedule[], nowMs: number): Promise<Tick[]> {
    const ticks: Tick[] = []
    let [jobs, bytes] = [0, 0]
    const until = this.#clock.now() + WORKED_OUT_FOR_MS
    for (const schedule of schedules) {
      const tick = await this.#tickOf(schedule, nowMs)
      ticks.push(tick)
      jobs += tick.jobs.length
      for (const { record } of tick.jobs) bytes += record.length
      if (jobs >= JOBS_AT_ONCE || bytes >= BYTES_AT_ONCE || this.#clock.now() > until) break
      await setImmediate()
    }
    return ticks
  }

  async #tickOf(schedule: StoredSchedule, nowMs: number): Promise<Tick> {
    try {
      return await this.#planned(schedule, nowMs)
    } catch (error) {
      const name = fromToken(schedule.name)
      this.#warn('schedule.unreadable', `The schedule "${name}" cannot be understood; its tick is missed.`, error)
      const nextUs = toUs(nowMs + UNREADABLE_AGAIN_MS)
      return { schedule, nextUs, missed: 1, tenant: 'default', level: 'normal', lane: 'default', jobs: [] }
    }
  }

  async #planned(schedule: StoredSchedule, nowMs: number): Promise<Tick> {
    const definition = JSON.parse(schedule.definition) as Definition
    const due = Number(schedule.dueUs) / 1_000
    const plan = await planTicks(this.#timetable(definition), definition.missed, { due, now: nowMs })
    const name = fromToken(schedule.name)
    const packed = (tick: number) =>
      this.#packer.pack({ ...definition.job, id: jobIdOf(name, tick) }, undefined, this.#clock.date())
    const { tenant, level, lane } = packed(due)
    const jobs = plan.ticks.map((tick) => ({ tickUs: toUs(tick), ...packed(tick) }))
    const nextUs = plan.next === undefined ? '' : toUs(plan.next)
    return { schedule, nextUs, missed: plan.missed, tenant, level, lane, jobs }
  }

  /** Thousands of schedules have few timetables. */
  #timetable({ missed, job, ...timing }: Definition): Timetable {
    const key = JSON.stringify(timing)
    const known = this.#timetables.get(key)
    if (known) return known
    if (this.#timetables.size >= TIMETABLES_KEPT) this.#timetables.clear()
    const timetable = timetableOf(timing)
    this.#timetables.set(key, timetable)
    return timetable
  }

  #lookAfter(ms: number): void {
    this.#cancelTimer?.()
    if (this.#isClosed) return
    this.#cancelTimer = this.#clock.setTimer(() => this.look(), ms)
  }

  #warn(event: LogEvent, message: string, error?: unknown): void {
    const more = error === undefined ? {} : { error }
    this.#log({ level: 'warn', event, message: `Queue "${this.#queue}": ${message}`, ...more })
  }
}

function toUs(ms: number): string {
  return String(Math.round(ms * 1_000))
}
