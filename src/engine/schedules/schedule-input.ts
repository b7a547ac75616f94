import { checkOptions, group, oneOf, optional, type Report, type Rule } from '../../assert.ts'
import { InvalidJobError, InvalidOptionsError } from '../../errors.ts'
import { parseJobKey } from '../../store/job-place.ts'
import { problemOfName } from '../../store/names.ts'
import { parseDuration } from '../duration.ts'
import { farthestMs, parseMoment } from '../moment.ts'
import { type JobInput, Packer } from '../submission.ts'
import { problemOfCron, problemOfTimeZone, type Timing } from './timetable.ts'

/** The job of every tick. Its id is `<schedule>@<tick>`: `nightly@2026-03-29T01:00:00.000Z`. */
export type ScheduleJob = Omit<JobInput, 'id' | 'delayMs' | 'runAt'>

/** What becomes of ticks that pass while no process makes jobs of them. */
export type MissedRule = 'one' | 'all' | 'skip'

/** A repeating job: when it is due, and what is done then. Give either `cron` or `every`. */
export interface ScheduleInput {
  /**
   * Minute, hour, day of month, month, day of week; with a sixth field before them, seconds. Or `@hourly`, `@daily`,
   * `@weekly`, `@monthly`, `@yearly`.
   */
  cron?: string
  /**
   * Whose clocks `cron` means. A local time that is left out when clocks are put on is met at that moment; one that comes
   * twice when they are put back is met once. Patterns for every hour go on through both.
   * @default 'UTC'
   */
  timeZone?: string
  /** Elapsed time: ms, or text such as `'15m'`. 100 ms at least. */
  every?: number | string
  /**
   * An instant of `every`, before or after now, from which all others are counted; so that restarts change nothing. A date,
   * ms since 1970, or text: `2026-01-01`, which is midnight in UTC, or with a time and its zone, `2026-01-01T06:00:00+01:00`.
   * @default 1970, so that an hour starts when the clock says so in UTC
   */
  anchor?: Date | number | string
  /**
   * Ticks pass unmet when no process is there, or Redis is not. `one`: the latest of them is made up for, the others count as
   * missed. `all`: each of them is, the latest 1,000. `skip`: none that is more than a minute late.
   * @default 'one'
   */
  missed?: MissedRule
  job: ScheduleJob
}

/** As it is stored, in this order: two processes that want the same write the same. */
export type Definition = Timing & { readonly missed: MissedRule; readonly job: ScheduleJob }

const SHORTEST_MS = 100
const LONGEST_MS = 366 * 86_400_000
// With the tick behind it, it is the id of a job, which has 256.
export const longestScheduleName = 200

const any: Rule<unknown> = (value) => value

const every: Rule<number> = (value, path, report) => {
  const ms = typeof value === 'string' ? parseDuration(value) : value
  if (typeof ms !== 'number' || !Number.isSafeInteger(ms) || ms < SHORTEST_MS || ms > LONGEST_MS) {
    report(path, 'must be whole ms or text such as "15m" (ms, s, m, h, d), from 100 ms to 366 days')
  }
  return ms as number
}

const anchor: Rule<number> = (value, path, report) => {
  const ms = value instanceof Date ? value.getTime() : typeof value === 'string' ? instantOf(value) : value
  if (!Number.isSafeInteger(ms) || Math.abs(ms as number) > farthestMs) {
    report(path, 'must be a date, ms since 1970 or text such as "2026-01-01" or "2026-01-01T06:00:00Z", with its zone')
  }
  return ms as number
}

/** A time without a zone would be another instant on each machine. */
function instantOf(text: string): number | undefined {
  const moment = parseMoment(text)
  return moment?.isLocal ? undefined : moment?.ms
}

const byProblem =
  (problemOf: (value: unknown) => string | undefined): Rule<string> =>
  (value, path, report) => {
    const problem = problemOf(value)
    if (problem) report(path, problem)
    return value as string
  }

/** In the order in which they are stored. What they say is checked as a whole, by packing a job. */
const jobFields: Record<keyof ScheduleJob, Rule<unknown>> = {
  type: any,
  payload: any,
  tenant: any,
  level: any,
  lane: any,
  ordered: any,
  cost: any,
  maxRetries: any,
  timeoutMs: any,
}

const rules = {
  cron: optional(byProblem(problemOfCron)),
  timeZone: optional(byProblem(problemOfTimeZone)),
  every: optional(every),
  anchor: optional(anchor),
  missed: oneOf(['one', 'all', 'skip'], { default: 'one' }),
  job: group(jobFields),
}

/** @throws InvalidOptionsError that names every field that cannot be used. */
export function checkSchedule(name: string, input: ScheduleInput, maxPayloadBytes: number): Definition {
  checkScheduleName(name)
  const checked = checkOptions(`schedule "${name}"`, input, rules, (settings, report) => {
    checkTiming(settings, report)
    checkJob(name, settings.job as ScheduleJob, maxPayloadBytes, report)
  })
  const { missed } = checked
  const job = inOrder(checked.job as ScheduleJob)
  return checked.cron === undefined
    ? { everyMs: checked.every as number, anchor: checked.anchor ?? 0, missed, job }
    : { cron: checked.cron, timeZone: checked.timeZone ?? 'UTC', missed, job }
}

/** What is wrong with the name of a schedule, as the rest of a sentence; undefined when it can be used. */
export function problemOfScheduleName(name: unknown): string | undefined {
  if (typeof name === 'string' && name.length > longestScheduleName) {
    return `must have 1 to ${longestScheduleName} characters, not ${name.length}`
  }
  const problem = problemOfName(name)
  if (problem) return problem
  if (!parseJobKey(jobIdOf(name as string, 0))) return undefined
  return 'would give jobs an id that looks like a generated one (level:lane:number:tenant); choose another form'
}

export function checkScheduleName(name: string): void {
  const problem = problemOfScheduleName(name)
  if (problem) throw new InvalidOptionsError('schedule', [{ path: 'name', problem }])
}

function checkTiming(given: { [Name in 'cron' | 'timeZone' | 'every' | 'anchor']: unknown }, report: Report): void {
  if ((given.cron === undefined) === (given.every === undefined)) {
    report('cron', given.cron === undefined ? 'or every must be given' : 'and every exclude each other: give one')
  }
  if (given.cron === undefined && given.timeZone !== undefined) report('timeZone', 'belongs to cron')
  if (given.every === undefined && given.anchor !== undefined) report('anchor', 'belongs to every')
}

function checkJob(name: string, job: ScheduleJob, maxPayloadBytes: number, report: Report): void {
  try {
    new Packer({}, maxPayloadBytes).pack({ ...job, id: jobIdOf(name, 0) }, undefined, 0)
  } catch (error) {
    if (!(error instanceof InvalidJobError)) throw error
    report('job', `cannot be submitted: ${error.problem}`)
  }
}

function inOrder(job: ScheduleJob): ScheduleJob {
  const fields = Object.keys(jobFields) as (keyof ScheduleJob)[]
  return Object.fromEntries(fields.map((field) => [field, job[field]])) as ScheduleJob
}

/** The id of the job of a tick. */
export function jobIdOf(schedule: string, tick: number): string {
  return `${schedule}@${new Date(tick).toISOString()}`
}
