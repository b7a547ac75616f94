import { randomBytes } from 'node:crypto'
import { checkOptions, integer, optional, text } from '../../assert.ts'
import { systemClock } from '../../clock.ts'
import { UnknownScheduleError } from '../../errors.ts'
import { toToken } from '../../store/names.ts'
import { repeatWhileUnavailable } from '../../store/repeat.ts'
import type { Requests } from '../../store/requests.ts'
import { changeSchedule } from '../../store/scripts/change-schedule.ts'
import { readSchedulePage, type ScheduleCursor } from '../../store/scripts/read-schedule-page.ts'
import { readSchedules, type StoredSchedule } from '../../store/scripts/read-schedules.ts'
import { type SetScheduleReply, setSchedule } from '../../store/scripts/set-schedule.ts'
import type { IdlePace } from '../idle-pace.ts'
import type { SubmittedJob } from '../intake.ts'
import type { Log } from '../log.ts'
import type { JobInput } from '../submission.ts'
import { nextUs, planChange } from './change.ts'
import { checkScheduleCost } from './schedule-cost.ts'
import { checkSchedule, checkScheduleName, type Definition, jobIdOf, type ScheduleInput } from './schedule-input.ts'
import { type ScheduleView, toScheduleView } from './schedule-view.ts'

/** What became of a schedule that was set, and how it stands. */
export interface ScheduleChange {
  /** `unchanged`: it was so before, and goes on as if nothing had been said. */
  readonly result: ScheduleResult
  readonly schedule: ScheduleView
}

/** A page of schedules, by when they are due; those that are paused come last. */
export interface SchedulePage {
  readonly schedules: readonly ScheduleView[]
  /** Of the next page; undefined on the last. */
  readonly cursor: string | undefined
  readonly total: number
  /** How many are due within `dueWithinMs`. */
  readonly dueSoon: number
  /** When the first is due, in ms since 1970. */
  readonly nextAt: number | undefined
}

type ScheduleResult = SetScheduleReply['result']

const DEFAULT_SOON_MS = 60_000
// A process that claims finds out at once that the store was emptied, unless another was faster. Others ask this often,
// less often where a process has more of the kind.
const CHECK_EVERY_MS = 60_000

const cursorPattern = /^\d{1,16}:\S+$/

const pageRules = {
  dueWithinMs: optional(integer({ min: 0, max: 366 * 86_400_000 })),
  cursor: optional(
    text({ maxLength: 2_000, pattern: { test: cursorPattern, words: 'a cursor that a page answered' } }),
  ),
  limit: integer({ min: 1, max: 500, default: 50 }),
}

/** For their queue: to declare them again when the store has forgotten them, and to end with it. */
export let insideOfSchedules: (schedules: Schedules) => { declareAgain(): void; close(): void }

/** The repeating jobs of one queue. One job is made for each tick, whatever the number of processes. */
export class Schedules {
  readonly #requests: Requests
  readonly #maxPayloadBytes: number
  readonly #pace: IdlePace
  readonly #log: Log
  readonly #ready: () => Promise<void>
  readonly #readable: () => Promise<void>
  readonly #submit: (job: JobInput) => Promise<SubmittedJob>
  /** What this process wants to be there, by token. */
  readonly #declared = new Map<string, Definition>()
  /** When the queue got its first schedule: another, or none, once the store was emptied. */
  #sinceUs = ''
  #declaring: Promise<void> | undefined
  #cancelCheck: (() => void) | undefined
  #leavePace: (() => void) | undefined
  #isClosed = false

  static {
    insideOfSchedules = (schedules) => ({
      declareAgain: () => schedules.#declareAgain(),
      close: () => schedules.#close(),
    })
  }

  /** Made by the queue. */
  constructor(parts: {
    requests: Requests
    maxPayloadBytes: number
    pace: IdlePace
    log: Log
    ready: () => Promise<void>
    /** The same for whoever only looks. */
    readable: () => Promise<void>
    submit: (job: JobInput) => Promise<SubmittedJob>
  }) {
    this.#requests = parts.requests
    this.#maxPayloadBytes = parts.maxPayloadBytes
    this.#pace = parts.pace
    this.#log = parts.log
    this.#ready = parts.ready
    this.#readable = parts.readable
    this.#submit = parts.submit
  }

  /**
   * Makes a schedule, or changes it at once. Every process may say so at its start: the same again changes nothing, its next
   * tick included. Ticks that are due already stay due where only the job or `missed` is another, and are missed where it is due
   * at other instants. A store that has lost it gets it from here again, while this process lives.
   */
  async set(name: string, schedule: ScheduleInput): Promise<ScheduleChange> {
    const definition = checkSchedule(name, schedule, this.#maxPayloadBytes)
    const token = toToken(name)
    await this.#ready()
    await checkScheduleCost(this.#requests, name, definition.job)
    const result = await this.#store(token, definition, { onlyIfAbsent: false })
    this.#declared.set(token, definition)
    this.#checkLater()
    return { result, schedule: await this.#known(name) }
  }

  /** Undefined if there is none of that name. */
  async get(name: string): Promise<ScheduleView | undefined> {
    const { stored } = await this.#read(name)
    return stored && toScheduleView(stored)
  }

  /** @param page - `dueWithinMs`: only what is due that soon; without it, all, and what is due within a minute is counted. */
  async list(page: { dueWithinMs?: number; cursor?: string; limit?: number } = {}): Promise<SchedulePage> {
    const { dueWithinMs, cursor, limit } = checkOptions('schedules.list', page, pageRules)
    await this.#readable()
    const found = await readSchedulePage(this.#requests, {
      withinMs: dueWithinMs ?? DEFAULT_SOON_MS,
      onlyInTime: dueWithinMs !== undefined,
      after: cursor === undefined ? undefined : toCursor(cursor),
      most: limit,
    })
    return {
      schedules: found.schedules.map(toScheduleView),
      cursor: found.cursor && `${found.cursor.score}:${found.cursor.name}`,
      total: found.total,
      dueSoon: found.inTime,
      nextAt: found.firstUs === '' ? undefined : Number(found.firstUs) / 1_000,
    }
  }

  /** False if there was none. Jobs it has made stay. */
  async remove(name: string): Promise<boolean> {
    checkScheduleName(name)
    await this.#ready()
    this.#declared.delete(toToken(name))
    return (await changeSchedule(this.#requests, { name: toToken(name), verb: 'remove' })) === 'changed'
  }

  /** No ticks until `resume`; those that pass meanwhile are not missed. */
  async pause(name: string): Promise<void> {
    checkScheduleName(name)
    await this.#ready()
    this.#unlessUnknown(name, await changeSchedule(this.#requests, { name: toToken(name), verb: 'pause' }))
  }

  /** Goes on with the next tick. */
  async resume(name: string): Promise<void> {
    const { stored, nowMs } = await this.#read(name)
    if (!stored) throw new UnknownScheduleError({ schedule: name })
    const dueUs = nextUs(JSON.parse(stored.definition) as Definition, nowMs)
    this.#unlessUnknown(name, await changeSchedule(this.#requests, { name: toToken(name), verb: 'resume', dueUs }))
  }

  /** A job of the schedule at once, besides those of its ticks and also while it is paused. */
  async runNow(name: string): Promise<SubmittedJob> {
    const { stored, nowMs } = await this.#read(name)
    if (!stored) throw new UnknownScheduleError({ schedule: name })
    const { job } = JSON.parse(stored.definition) as Definition
    return this.#submit({ ...job, id: `${jobIdOf(name, nowMs)}#${randomBytes(4).toString('hex')}` })
  }

  /** The store has forgotten them: what this process wanted is there again, unless somebody was faster. */
  #declareAgain(): void {
    this.#declaring ??= this.#declareAll()
      .catch((error: unknown) => {
        const message = 'Schedules could not be stored again after Redis was emptied; it is tried again in a minute.'
        this.#log({ level: 'warn', event: 'schedules.lost', message, error })
        this.#sinceUs = ''
      })
      .finally(() => {
        this.#declaring = undefined
      })
  }

  #close(): void {
    this.#isClosed = true
    this.#leavePace?.()
    this.#cancelCheck?.()
  }

  async #declareAll(): Promise<void> {
    for (const [token, definition] of [...this.#declared]) {
      if (!this.#isClosed) await this.#store(token, definition, { onlyIfAbsent: true })
    }
  }

  #checkLater(): void {
    this.#cancelCheck?.()
    if (this.#isClosed) return
    this.#leavePace ??= this.#pace.join()
    this.#cancelCheck = systemClock.setTimer(() => void this.#check(), this.#pace.stretch(CHECK_EVERY_MS))
  }

  async #check(): Promise<void> {
    try {
      const { sinceUs } = await readSchedules(this.#requests, [])
      if (sinceUs !== this.#sinceUs) this.#declareAgain()
    } catch {
      // Redis is away: it is asked again.
    }
    this.#checkLater()
  }

  async #store(name: string, definition: Definition, options: { onlyIfAbsent: boolean }): Promise<ScheduleResult> {
    const text = JSON.stringify(definition)
    for (;;) {
      const { nowUs, sinceUs, schedules } = await repeatWhileUnavailable(() => readSchedules(this.#requests, [name]))
      const [was] = schedules
      if (was && (options.onlyIfAbsent || was.definition === text)) {
        this.#sinceUs = sinceUs
        return 'unchanged'
      }
      const nowMs = Number(nowUs) / 1_000
      const due = was ? await planChange(was, definition, nowMs) : { dueUs: nextUs(definition, nowMs) }
      const stored = await setSchedule(this.#requests, { name, definition: text, was, ...due, ...options })
      // Somebody else has changed it meanwhile, or made its tick: how it stands now is what counts.
      if (!stored) continue
      this.#sinceUs = stored.sinceUs
      return stored.result
    }
  }

  async #read(name: string): Promise<{ stored: StoredSchedule | undefined; nowMs: number }> {
    checkScheduleName(name)
    await this.#readable()
    const { schedules, nowUs } = await readSchedules(this.#requests, [toToken(name)])
    return { stored: schedules[0], nowMs: Math.floor(Number(nowUs) / 1_000) }
  }

  async #known(name: string): Promise<ScheduleView> {
    const { stored } = await this.#read(name)
    if (!stored) throw new UnknownScheduleError({ schedule: name })
    return toScheduleView(stored)
  }

  #unlessUnknown(name: string, reply: string): void {
    if (reply === 'unknown') throw new UnknownScheduleError({ schedule: name })
  }
}

export function isScheduleCursor(cursor: string): boolean {
  return cursorPattern.test(cursor)
}

function toCursor(cursor: string): ScheduleCursor {
  const [score = '', ...name] = cursor.split(':')
  return { score, name: name.join(':') }
}
