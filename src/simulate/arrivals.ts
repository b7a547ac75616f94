import { group, integer, number, oneOf, optional, type Report, type Rule, show } from '../assert.ts'
import { parseDuration } from '../engine/duration.ts'
import { formOf, time, withDefault } from './plan-rules.ts'
import type { Random } from './random.ts'

/** When jobs of a tenant arrive. Times are counted from the start. */
export type Arrival = Flood | Stream

/** All at once, as a bulk action: they stand in a lane of their own. */
interface Flood {
  jobs: number
  /** @default '0s' */
  at?: string
  /** And again so much later, each time an action of its own. */
  every?: string
}

/** One after the other, in the tenant's default lane: give `rate` or `perHour`. */
interface Stream {
  /** `5/s`, `0.2/s`, `300/h`. */
  rate?: string
  /** Jobs in each hour of the day (UTC), from midnight on: 24 numbers. */
  perHour?: readonly number[]
  /** @default '0s' */
  from?: string
  /** @default the end */
  until?: string
  /** `random`: as from many who know nothing of each other (Poisson). `even`: like a clock. @default 'random' */
  spread?: 'random' | 'even'
}

export type CheckedArrival =
  | { readonly kind: 'flood'; readonly jobs: number; readonly at: number; readonly every: number | undefined }
  | {
      readonly kind: 'stream'
      /** Jobs in a µs, in each hour of the day: one number where they are all alike. */
      readonly intensity: readonly number[]
      readonly from: number
      readonly until: number | undefined
      readonly isEven: boolean
    }

const HOUR_US = 3_600e6
const HOURS = 24
const MOST_JOBS = 1e9

const floodRules = {
  jobs: integer({ min: 1, max: MOST_JOBS }),
  at: withDefault(time, 0),
  every: optional(time),
}

const streamRules = {
  rate: optional((value: unknown, path: string, report: Report) => [intensityOf(value, path, report)]),
  perHour: optional((value: unknown, path: string, report: Report) => profileOf(value, path, report)),
  from: withDefault(time, 0),
  until: optional(time),
  spread: oneOf(['random', 'even'], { default: 'random' }),
}

export const arrivalRule: Rule<CheckedArrival> = (value, path, report) => {
  const form = formOf(value, ['jobs', 'rate', 'perHour'])
  if (form === undefined) {
    report(path, `must have "jobs" (at once), "rate" or "perHour", and ${show(value)} has none of them`)
    return { kind: 'flood', jobs: 0, at: 0, every: undefined }
  }
  if (form === 'jobs') {
    const flood = group(floodRules)(value, path, report)
    if (flood.every === 0) report(`${path}.every`, 'must be more than nothing')
    return { kind: 'flood', ...flood }
  }
  const { rate, perHour, from, until, spread } = group(streamRules)(value, path, report)
  if (rate && perHour) report(path, 'has both a rate and perHour; give one')
  if (until !== undefined && until <= from) report(`${path}.until`, 'must be later than its from')
  return { kind: 'stream', intensity: rate ?? perHour ?? [0], from, until, isEven: spread === 'even' }
}

function intensityOf(value: unknown, path: string, report: Report): number {
  const match = typeof value === 'string' ? /^(\d+(?:\.\d+)?)\s*\/\s*(\d*)\s*([a-z]+)$/.exec(value.trim()) : null
  const ms = match && parseDuration(`${match[2] || '1'}${match[3]}`)
  const perUs = match && ms ? Number(match[1]) / (ms * 1000) : 0
  if (!(perUs > 0)) report(path, `must be a rate above 0 such as "5/s", "0.2/s" or "300/h", not ${show(value)}`)
  return perUs
}

function profileOf(value: unknown, path: string, report: Report): readonly number[] {
  if (!Array.isArray(value) || value.length !== HOURS) {
    report(path, `must be a list of ${HOURS} numbers, one for each hour of the day, not ${show(value)}`)
    return [0]
  }
  const jobs = value.map((each, hour) => number({ min: 0, max: MOST_JOBS })(each, `${path}[${hour}]`, report))
  if (jobs.every((each) => each === 0)) report(path, 'must have a job in some hour')
  return jobs.map((each) => each / HOUR_US)
}

/** How many come within so much time. */
export function expectedJobs(arrival: CheckedArrival, startUs: number, durationUs: number): number {
  if (arrival.kind === 'flood') {
    if (arrival.at >= durationUs) return 0
    return arrival.jobs * (arrival.every ? Math.ceil((durationUs - arrival.at) / arrival.every) : 1)
  }
  const until = startUs + Math.min(durationUs, arrival.until ?? durationUs)
  let jobs = 0
  for (let at = startUs + arrival.from; at < until; ) {
    const stop = Math.min(until, endOfHour(at))
    jobs += intensityAt(arrival.intensity, at) * (stop - at)
    at = stop
  }
  return jobs
}

/** The instants at which the jobs of a stream arrive. */
export class StreamClock {
  readonly #stream: CheckedArrival & { kind: 'stream' }
  readonly #random: Random
  readonly #until: number
  #at: number
  #isFirst = true

  /** @param startUs - Of the simulation; @param endUs - After which nothing arrives. */
  constructor(stream: CheckedArrival & { kind: 'stream' }, random: Random, startUs: number, endUs: number) {
    this.#stream = stream
    this.#random = random
    this.#at = startUs + stream.from
    this.#until = Math.min(endUs, startUs + (stream.until ?? Number.POSITIVE_INFINITY))
  }

  /** Undefined when no more come. */
  next(): number | undefined {
    let left = this.#stretch()
    let at = this.#at
    while (at < this.#until) {
      const intensity = intensityAt(this.#stream.intensity, at)
      const stop = Math.min(this.#until, this.#stream.intensity.length === 1 ? this.#until : endOfHour(at))
      const inStretch = intensity * (stop - at)
      if (inStretch > left) {
        this.#at = at + left / intensity
        return Math.round(this.#at)
      }
      left -= inStretch
      at = stop
    }
    this.#at = this.#until
    return undefined
  }

  /** In jobs: how much of the intensity passes until the next. Those that come like clocks do not all begin together. */
  #stretch(): number {
    if (!this.#stream.isEven) return this.#random.exponential()
    const stretch = this.#isFirst ? this.#random.next() : 1
    this.#isFirst = false
    return stretch
  }
}

function intensityAt(intensity: readonly number[], at: number): number {
  return intensity[intensity.length === 1 ? 0 : Math.floor(at / HOUR_US) % HOURS] ?? 0
}

function endOfHour(at: number): number {
  return (Math.floor(at / HOUR_US) + 1) * HOUR_US
}
