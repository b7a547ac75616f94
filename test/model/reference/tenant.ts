import { defaultLane, type Level, levels } from '../../../src/store/names.ts'
import type { LimitRule } from '../../../src/store/settings.ts'
import type { Action } from './action.ts'
import { newPace } from './congestion.ts'

/** What stands where in the reference model: jobs, lanes, and tenants in line. */

export interface History {
  attempts: number
  stalls: number
  throttles: number
  since: number
  reason: string
  error: string
}

export const noHistory: History = { attempts: 0, stalls: 0, throttles: 0, since: 0, reason: '', error: '' }

/** `forgotten`: discarded, or ended so long ago that nothing says how. */
type State = 'waiting' | 'delayed' | 'running' | 'succeeded' | 'failed' | 'canceled' | 'forgotten'

export interface Job {
  readonly key: string
  readonly level: Level
  readonly lane: string
  readonly tenant: string
  readonly action: Action | undefined
  readonly sequence: string
  readonly digest: string
  /** In permits. */
  readonly cost: number
  /** Its record without cost and history. */
  readonly rest: string
  /** Of pools that granted it, by limit. */
  readonly members: Map<string, string>
  history: History | undefined
  state: State
  /** When a delayed one is due, a dead one died, a cancelled one may be forgotten; 0: its action knows that it was. */
  at: number
  /** Why it died. */
  reason: string
  /** How it has ended, for its action: a dead letter that was discarded has failed all the same. */
  ended: 'succeeded' | 'failed' | 'canceled' | undefined
  /** It stands aside until it is due, although its action has ended. */
  isLingering: boolean
  /** A worker was told to give it up. */
  isCanceling: boolean
  /** Of the claim that holds it. */
  fence: string
  /** The level it was claimed on. */
  standing: Level
}

export function textOf({ cost, history, rest }: Job): string {
  const price = cost === 1 ? '' : `*${cost};`
  if (!history) return `${price}\n${rest}`
  const { attempts, stalls, throttles, since, reason, error } = history
  return `${price}${attempts},${stalls},${throttles},${since},${reason},${error}\n${rest}`
}

/**
 * A job as its claim holds it: one that stood on another level than its own, or that a pool granted, carries that before
 * its record.
 */
export function claimedTextOf(job: Job): string {
  const members = [...job.members].map(([limit, member]) => `&${limit}=${member}`).join('')
  const isPlain = job.standing === job.level && members === ''
  return (isPlain ? '' : `^${job.standing}${members}\n`) + textOf(job)
}

/** Two leases ran out under it: it may be what kills its workers. */
export function isSuspect(job: Job): boolean {
  return (job.history?.stalls ?? 0) > 1
}

/** A line of jobs. Cancelled ones stay in it until a claim meets them. */
export interface Lane {
  readonly level: Level
  readonly token: string
  /** What came back, before what never left. */
  readonly front: Job[]
  readonly list: Job[]
  /** The number of the next fresh job. */
  next: number | undefined
  /** Of an ordered lane: the job that has not ended. */
  busy: Job | undefined
}

/** A tenant's place in line on one level. */
export interface Stand {
  present: boolean
  score: number
  /** The score of one that is out of line for a while. */
  kept: number | undefined
  /** Of the turn that is under way: thousandths of a job. */
  used: number
  /** How far in the rounds of the level it has been served. */
  reached: number
  since: number
  /** What the index of the overdue says: it is put right only when it matters. */
  indexedSince: number
  longestWait: number
  /** The virtual time of its entry, and what it was entitled to until then: millionths of a job. */
  virtual: number
  entitled: number
  received: number
}

export interface Parking {
  readonly limit: string
  readonly until: number
  /** Its limit has changed since: it is put back by the next claim. */
  isLifted: boolean
}

export class Tenant {
  readonly name: string
  weight = 1
  base = 0
  override: Level | undefined
  pausedAt: number | undefined
  parking: Parking | undefined
  /** Submitted since it last had nothing to do. */
  total = 0
  /** Binary digits of how many of its jobs waited when that was last looked at; 0 for few. */
  ranked = 0
  /** In the script under way: more wait, or it has begun another slot of time. */
  hasGrown = false
  isPacedAnew = false
  readonly pace = newPace()
  /** When last: in whole seconds. */
  throttles = { count: 0, second: 0 }
  /** Of the job that was pushed back last, in ms. */
  backoff = 0
  /** Starts that count for no job that was done. */
  uncounted = 0
  /** By how much the cost of all starts is more than their number. */
  costs = 0
  ownLimits: (LimitRule | { readonly kind: 'none'; readonly name: string })[] = []
  /** What its limits count, as it is stored. */
  readonly meters = new Map<string, string>()
  readonly lanes: Lane[] = []
  /** The lanes that take turns on a level, the current one first. */
  readonly turns: Record<Level, Lane[]> = { high: [], normal: [], low: [] }
  readonly stands: Record<Level, Stand> = { high: newStand(), normal: newStand(), low: newStand() }

  constructor(name: string) {
    this.name = name
  }

  /** The lane, made when it is not there. */
  lane(level: Level, token: string): Lane {
    const found = this.lanes.find((lane) => lane.level === level && lane.token === token)
    if (found) return found
    const lane: Lane = { level, token, front: [], list: [], next: undefined, busy: undefined }
    this.lanes.push(lane)
    return lane
  }

  /** A lane takes part in the turns while it has a job to give. Joining is at the end. */
  joinTurns(lane: Lane): void {
    const turns = this.turns[lane.level]
    if (remaining(lane) > 0 && !lane.busy && !turns.includes(lane)) turns.push(lane)
  }

  hasWork(standing: Level): boolean {
    if (this.override === undefined) return this.turns[standing].length > 0
    return this.override === standing && levels.some((level) => this.turns[level].length > 0)
  }

  /** In thousandths. */
  get share(): number {
    return Math.floor(this.weight * 1000 + 0.5)
  }

  get isFree(): boolean {
    return this.pausedAt === undefined && !this.parking
  }

  get hasSettings(): boolean {
    return (
      this.weight !== 1 ||
      this.base !== 0 ||
      this.override !== undefined ||
      this.pausedAt !== undefined ||
      this.ownLimits.length > 0
    )
  }
}

function newStand(): Stand {
  return {
    present: false,
    score: 0,
    kept: undefined,
    used: 0,
    reached: 0,
    since: 0,
    indexedSince: 0,
    longestWait: 0,
    virtual: 0,
    entitled: 0,
    received: 0,
  }
}

export function remaining(lane: Lane): number {
  return lane.front.length + lane.list.length
}

export function isOrdered(token: string): boolean {
  return token.startsWith('!')
}

export function isDefaultLane(lane: Lane): boolean {
  return lane.token === defaultLane
}
