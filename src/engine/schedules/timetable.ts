import { Cron, CronPattern } from 'croner'
import { TimeZone } from './time-zone.ts'

/** When a schedule is due. Instants are ms since 1970. */
export interface Timetable {
  /** The first instant after this one; undefined when none comes any more. */
  next(after: number): number | undefined
  /** How many instants may be looked for before other work of the process gets its turn. */
  readonly stepsAtOnce: number
}

/** A cron pattern, and the zone whose clocks it means. */
interface CronTiming {
  readonly cron: string
  readonly timeZone: string
}

/** Elapsed time, counted from an instant that never moves: a restart changes nothing. */
interface IntervalTiming {
  readonly everyMs: number
  readonly anchor: number
}

export type Timing = CronTiming | IntervalTiming

export function timetableOf(timing: Timing): Timetable {
  return 'cron' in timing ? cronTimetable(timing) : intervalTimetable(timing)
}

function intervalTimetable({ everyMs, anchor }: IntervalTiming): Timetable {
  // An instant near 1970: from an anchor at the end of all numbers the next one would be rounded, at times to the one before.
  const first = anchor % everyMs
  return {
    stepsAtOnce: 100_000,
    next: (after) => first + (Math.floor((after - first) / everyMs) + 1) * everyMs,
  }
}

// Each takes about 100 µs, most of it to ask which time it is in the zone.
const CRON_STEPS = 100
const MODE = '5-or-6-parts'

/**
 * A pattern that names hours is met once for each local time it names: one that comes twice when clocks are put back counts
 * the first time, and one that is left out when they are put on counts at that moment. A pattern for every hour goes by
 * elapsed time: it goes on through both.
 */
function cronTimetable({ cron, timeZone }: CronTiming): Timetable {
  return {
    stepsAtOnce: CRON_STEPS,
    next: isForEveryHour(cron) ? throughChanges(cron, timeZone) : byWall(cron, timeZone),
  }
}

function throughChanges(cron: string, timeZone: string): Timetable['next'] {
  const pattern = patternOf(cron, timeZone)
  return (after) => pattern.nextRun(new Date(after))?.getTime()
}

function byWall(cron: string, timeZone: string): Timetable['next'] {
  const zone = new TimeZone(timeZone)
  const pattern = patternOf(cron, 'UTC')
  return (after) => {
    let wall: Date | null = new Date(zone.wallTime(after))
    for (;;) {
      wall = pattern.nextRun(wall)
      if (!wall) return undefined
      const instant = zone.instantOf(wall.getTime())
      // In the hour that comes a second time, wall times start over; they have been met.
      if (instant > after) return instant
    }
  }
}

function patternOf(cron: string, timeZone: string): Cron {
  return new Cron(cron, { timezone: timeZone, mode: MODE, paused: true })
}

/** Whichever way it says so: as `*`, as a step of one or as all of them. */
function isForEveryHour(cron: string): boolean {
  return new CronPattern(cron, 'UTC', { mode: MODE }).hour.every(Boolean)
}

/** What is wrong with a cron pattern, as the rest of a sentence; undefined when it can be met. */
export function problemOfCron(cron: unknown): string | undefined {
  if (typeof cron !== 'string') return 'must be text such as "0 3 * * *"'
  // A date would be a pattern that is met once, and "?" the moment at which it is read.
  if (!/^@[a-z]+$|^\S+(\s+\S+){4,5}$/i.test(cron) || cron.includes('?')) {
    return 'must have five fields (minute, hour, day of month, month, day of week), six with seconds first, or be @hourly, @daily, @weekly, @monthly or @yearly'
  }
  try {
    if (patternOf(cron, 'UTC').nextRun()) return undefined
    return 'names a time that never comes'
  } catch (error) {
    return `cannot be understood: ${(error as Error).message.replace(/^CronPattern: /, '')}`
  }
}

/** What is wrong with the name of a time zone, as the rest of a sentence. */
export function problemOfTimeZone(name: unknown): string | undefined {
  const problem = 'must be the name of a time zone such as "Europe/Berlin" or "UTC"'
  if (typeof name !== 'string') return problem
  try {
    new TimeZone(name)
    return undefined
  } catch {
    return `${problem}; this system knows none that is called ${JSON.stringify(name.slice(0, 60))}`
  }
}
