import { detached } from '../detached.ts'
import { durationBucket } from '../durations.ts'
import type { JobPlace } from '../job-place.ts'
import type { Level } from '../names.ts'
import type { DeadReason } from '../reasons.ts'
import type { Requests } from '../requests.ts'
import { finishAndClaim as script } from '../scripts.generated.ts'

/** What became of a job, as its worker tells the store. */
export type Finish =
  | { readonly outcome: 'succeeded' }
  /** Failed; runs again after `delayMs`. */
  | { readonly outcome: 'retry'; readonly delayMs: number; readonly error: string }
  /** The upstream pushed back; runs again after `delayMs`, or by its tenant's backlog, without costing a retry. */
  | { readonly outcome: 'throttled'; readonly delayMs: number | undefined }
  /** A dead letter. */
  | { readonly outcome: 'dead'; readonly reason: DeadReason; readonly error: string }
  /** Not started, because its grant was stale: at the front again, its permits given back. */
  | { readonly outcome: 'returned' }
  /** Not finished, because the worker stops: at the front again. */
  | { readonly outcome: 'released' }
  /** This worker does not know its type; another may, after `delayMs`. */
  | { readonly outcome: 'unknown'; readonly delayMs: number }

export interface FinishedJob {
  readonly fence: string
  readonly jobKey: string
  /** What its key says. */
  readonly place: JobPlace
  readonly standing: Level
  readonly finish: Finish
  /** Of a job of an action that has ended. */
  readonly action?: FinishedInAction
  /** It cost more than one permit, or a pool granted it: its claim has to be asked what goes back where. */
  readonly isSpecial?: boolean
  readonly lesson?: Lesson
}

/** What an upstream's answer teaches the limits. */
export interface Lesson {
  /** The limit that stands for it; '': the narrowest. */
  readonly upstream: string
  readonly pushback: { readonly retryAfterMs: number | undefined } | undefined
  readonly reading:
    | { readonly remaining: number; readonly resetInMs: number; readonly limit: number | undefined }
    | undefined
  /** Of a pool. */
  readonly member?: string
}

/** What an action counts and keeps of a job. */
export interface FinishedInAction {
  readonly attempts: number
  readonly throttles: number
  readonly durationMs: number
  /** A line for its results; '' where it keeps none. */
  readonly result: string
}

export interface ClaimRequest {
  readonly wanted: number
  readonly levels: string
  readonly leaseMs: number
  /** For how long the client waits to be woken if it gets less than it wants. */
  readonly idleForMs: number
  readonly hasSuspect: boolean
  /**
   * Until when the client takes back leases that ran out, by the server's time in µs: a call that comes later leaves them, and
   * its reply says so. Not given: whenever it comes. See the module `recovery` of the engine.
   */
  readonly takesBackUntilUs?: number | undefined
  readonly finished: readonly FinishedJob[]
  /**
   * How many jobs of each claim the store has not been told of yet, those told now included: it saves looking for each.
   * A claim that is missing here, or whose number turns out wrong, is looked through.
   */
  readonly untold?: ReadonlyMap<string, number>
  /** For tests and simulation; the server's time otherwise. */
  readonly nowUs?: string
}

/** What there is to do besides jobs. */
export interface DueWork {
  /** A duty of the queue is due: see take-duty. */
  readonly hasDuties: boolean
  /** Schedules are due: see take-schedules. */
  readonly hasTicks: boolean
}

export interface ClaimReply extends DueWork {
  /** `again`: nothing found yet, but not everything was looked at. */
  readonly word: 'claimed' | 'idle' | 'again'
  /** Positions in `finished` of jobs that were no longer the caller's. */
  readonly stale: readonly number[]
  /** Until the next claim can bring anything; undefined when only a wake-up can tell. */
  readonly waitMs: number | undefined
  /** The caller is the one to claim then. */
  readonly holdsAlarm: boolean
  readonly fence: string
  /** How long the grants keep, from when the claim was sent; undefined: for ever. */
  readonly freshMs: number | undefined
  /** jobKey, record; for each. A job that stood on another level than its own has `^<level>\n` before its record. */
  readonly jobs: readonly string[]
  /** Lanes (`<lane>:<tenant>`) among the claimed whose action keeps results. */
  readonly kept: readonly string[]
  /** The caller is the one to record the queue's congestion: see record-congestion. */
  readonly isToRecord: boolean
  /** Leases have run out that this call did not take back because it came too late for it: the server's time, in µs. */
  readonly leftAtUs: number | undefined
}

// Between jobs and records of the reply: neither has control characters but line breaks.
const SEPARATOR = '\u001e'
// A claim's reply is at most this large, unless one job is larger.
const LARGEST_REPLY = 1_000_000
// Later than any instant, as lua/time.lua has it.
const NEVER_US = 9e15

export async function finishAndClaim(
  requests: Requests,
  claim: ClaimRequest,
  giveUpAfterMs?: number,
): Promise<ClaimReply> {
  const finished = groupFinished(claim.finished)
  let reply = await exchange(requests, claim, encode(claim, finished, false), giveUpAfterMs)
  if (reply[0] === 'unnamed') {
    reply = await exchange(requests, claim, encode(claim, finished, true), giveUpAfterMs)
  }
  return decode(reply, finished)
}

function exchange(
  requests: Requests,
  claim: ClaimRequest,
  finished: readonly (string | number)[],
  giveUpAfterMs: number | undefined,
): Promise<readonly unknown[]> {
  return requests.run(
    script,
    (request, server) => ({
      nowGiven: claim.nowUs ?? '',
      client: requests.client,
      request,
      server,
      wanted: claim.wanted,
      levelsServed: claim.levels,
      lease: claim.leaseMs * 1000,
      idleFor: claim.idleForMs * 1000,
      hasSuspect: claim.hasSuspect ? 1 : 0,
      maxBytes: LARGEST_REPLY,
      knownSince: requests.knownSince,
      takesBackUntil: String(claim.takesBackUntilUs ?? NEVER_US),
      finished,
    }),
    giveUpAfterMs === undefined ? {} : { giveUpAfterMs },
  )
}

/** What is told of one claim. */
interface ClaimReport {
  readonly fence: string
  readonly jobKeys: Set<string>
  /** Successes by level, tenant and action. */
  readonly groups: Map<string, Group>
  succeeded: number
}

interface Group {
  readonly tenantToken: string
  readonly standing: Level
  /** Where that is an action's; '' else. */
  readonly actionLane: string
  readonly jobs: FinishedJob[]
  /** Of the jobs, in `finished`. */
  readonly positions: number[]
}

interface Finished {
  /** Those with successes. */
  readonly claims: readonly ClaimReport[]
  /** Positions of jobs that the script looks at one by one. */
  readonly others: readonly number[]
  /** Positions of jobs that are there a second time. */
  readonly repeats: readonly number[]
}

/**
 * Successes by claim, tenant and action, so that the script has nothing to do for each of them; then all others. A job of
 * an ordered lane is one of the others: its lane must be opened. A job that is told twice goes out once, because the
 * script does not look for each of them; its repeats are stale.
 */
function groupFinished(finished: readonly FinishedJob[]): Finished {
  const claims = new Map<string, ClaimReport>()
  const others: number[] = []
  const repeats: number[] = []
  let claim: ClaimReport | undefined
  let group: Group | undefined
  let placeBefore: JobPlace | undefined
  for (let at = 0; at < finished.length; at++) {
    const job = finished[at] as FinishedJob
    if (claim?.fence !== job.fence) {
      claim = claimOf(claims, job)
      group = undefined
    }
    const toldBefore = claim.jobKeys.size
    const { place } = job
    if (claim.jobKeys.add(job.jobKey).size === toldBefore) repeats.push(at)
    else if (job.finish.outcome !== 'succeeded' || job.isSpecial || place.isOrdered) others.push(at)
    else {
      // Most are of the same line as the one before.
      if (place !== placeBefore || group?.standing !== job.standing) group = groupOf(claim, job)
      placeBefore = place
      group.jobs.push(job)
      group.positions.push(at)
      claim.succeeded += 1
    }
  }
  return { claims: [...claims.values()].filter(({ succeeded }) => succeeded > 0), others, repeats }
}

/** The list as the script reads it. The jobs of a claim that is told of as a whole are named only when it asks. */
function encode(
  { finished, untold }: ClaimRequest,
  { claims, others }: Finished,
  namesAll: boolean,
): (string | number)[] {
  const list = lessonsOf(finished)
  list.push(claims.length)
  for (const claim of claims) pushSuccesses(list, claim, untold?.get(claim.fence) ?? -1, namesAll)
  for (const at of others) {
    const { fence, jobKey, standing, finish, action } = finished[at] as FinishedJob
    const told = action ? `${measuresOf([action])}\n${action.result}` : ''
    list.push(fence, jobKey, standing, finish.outcome, delayUsOf(finish), detailOf(finish), told)
  }
  return list
}

/** How many, then each. Answers that a tenant's jobs got from one upstream in the meantime are told as one. */
function lessonsOf(finished: readonly FinishedJob[]): (string | number)[] {
  const lessons = new Map<string, ToldLesson>()
  for (const job of finished) {
    const { lesson, place, standing } = job
    if (!lesson) continue
    const key = `${place.tenantToken} ${standing} ${lesson.upstream} ${lesson.member ?? ''}`
    const known = lessons.get(key)
    if (!known) lessons.set(key, { job, lesson })
    else lessons.set(key, { job: lastPushedBack(known, { job, lesson }), lesson: merge(known.lesson, lesson) })
  }
  const list: (string | number)[] = [lessons.size]
  for (const { job, lesson } of lessons.values()) {
    const { upstream, member = '', pushback, reading } = lesson
    const pushed = pushback ? Math.round((pushback.retryAfterMs ?? 0) * 1000) : ''
    const left = reading ? `${reading.remaining}:${Math.round(reading.resetInMs * 1000)}:${reading.limit ?? 0}` : ''
    list.push(job.place.tenantToken, job.standing, upstream, member, job.fence, pushed, left)
  }
  return list
}

const SAME_RESET_MS = 5_000

interface ToldLesson {
  readonly job: FinishedJob
  readonly lesson: Lesson
}

/** By whose grant it is judged whether an answer is to one from before the last cut: the last that was pushed back. */
function lastPushedBack(a: ToldLesson, b: ToldLesson): FinishedJob {
  if (a.lesson.pushback && b.lesson.pushback) return Number(b.job.fence) > Number(a.job.fence) ? b.job : a.job
  return a.lesson.pushback ? a.job : b.job
}

/** The longer wait; of two readings the one that starts over later, or where that is the same, what leaves less. */
function merge(a: Lesson, b: Lesson): Lesson {
  const retryAfterMs = Math.max(a.pushback?.retryAfterMs ?? 0, b.pushback?.retryAfterMs ?? 0)
  const pushback = a.pushback || b.pushback ? { retryAfterMs: retryAfterMs > 0 ? retryAfterMs : undefined } : undefined
  return { ...b, pushback, reading: a.reading && b.reading ? later(a.reading, b.reading) : (a.reading ?? b.reading) }
}

function later<Reading extends NonNullable<Lesson['reading']>>(a: Reading, b: Reading): Reading {
  if (Math.abs(a.resetInMs - b.resetInMs) > SAME_RESET_MS) return a.resetInMs > b.resetInMs ? a : b
  return a.remaining < b.remaining ? a : b
}

function pushSuccesses(
  list: (string | number)[],
  { fence, succeeded, groups }: ClaimReport,
  untold: number,
  namesAll: boolean,
): void {
  let isNamed = namesAll || untold !== succeeded
  // The script needs the number of each job of an action.
  for (const { actionLane } of groups.values()) isNamed ||= actionLane !== ''
  list.push(fence, untold, succeeded, isNamed ? succeeded : 0)
  if (isNamed) for (const { jobs } of groups.values()) for (const { jobKey } of jobs) list.push(jobKey)
  list.push(groups.size)
  for (const { tenantToken, standing, actionLane, jobs } of groups.values()) {
    list.push(tenantToken, standing, actionLane, jobs.length)
    if (actionLane !== '') pushActionGroup(list, jobs)
  }
}

function pushActionGroup(list: (string | number)[], jobs: readonly FinishedJob[]): void {
  const told = jobs.map(({ action }) => action).filter((action) => action !== undefined)
  const hasResults = told.length === jobs.length && told.some(({ result }) => result !== '')
  list.push(measuresOf(told), hasResults ? told.length : 0)
  if (hasResults) for (const { result } of told) list.push(result)
}

/** Attempts, throttles, then bucket and count of each duration. */
function measuresOf(jobs: readonly FinishedInAction[]): string {
  let attempts = 0
  let throttles = 0
  const durations = new Map<number, number>()
  for (const job of jobs) {
    attempts += job.attempts
    throttles += job.throttles
    const bucket = durationBucket(job.durationMs)
    durations.set(bucket, (durations.get(bucket) ?? 0) + 1)
  }
  let text = `${attempts},${throttles}`
  for (const [bucket, count] of durations) text += `,${bucket},${count}`
  return text
}

function claimOf(claims: Map<string, ClaimReport>, { fence }: FinishedJob): ClaimReport {
  let claim = claims.get(fence)
  if (claim === undefined) {
    claim = { fence, jobKeys: new Set(), groups: new Map(), succeeded: 0 }
    claims.set(fence, claim)
  }
  return claim
}

function groupOf({ groups }: ClaimReport, { place, standing }: FinishedJob): Group {
  const { tenantToken, actionLane } = place
  const name = `${standing}:${tenantToken}:${actionLane}`
  let group = groups.get(name)
  if (group === undefined) {
    group = { tenantToken, standing, actionLane, jobs: [], positions: [] }
    groups.set(name, group)
  }
  return group
}

/** -1: as the tenant's backlog says. */
function delayUsOf(finish: Finish): number {
  if (!('delayMs' in finish)) return 0
  return finish.delayMs === undefined ? -1 : Math.round(finish.delayMs * 1000)
}

function detailOf(finish: Finish): string {
  switch (finish.outcome) {
    case 'retry':
      return finish.error
    case 'dead':
      return `${finish.reason},${finish.error}`
    default:
      return ''
  }
}

function decode(reply: readonly unknown[], finished: Finished): ClaimReply {
  const [word, stale, wait, alarm, fence, fresh, jobs, duties, kept, ticks, snapshot, leftAt] = reply as [
    ClaimReply['word'],
    number[],
    number,
    number,
    string,
    number,
    string,
    number,
    string[],
    number,
    number,
    string | undefined,
  ]
  return {
    word,
    stale: staleOf(stale, finished),
    waitMs: wait < 0 ? undefined : wait / 1000,
    holdsAlarm: alarm === 1,
    fence,
    freshMs: fresh === 0 ? undefined : fresh / 1000,
    jobs: jobs === '' ? [] : splitJobs(jobs),
    hasDuties: duties === 1,
    hasTicks: ticks === 1,
    kept,
    isToRecord: snapshot === 1,
    leftAtUs: leftAt === undefined ? undefined : Number(leftAt),
  }
}

/** From positions in the list that was told to those in what the caller gave. */
function staleOf(told: readonly number[], { claims, others, repeats }: Finished): readonly number[] {
  if (told.length === 0) return repeats
  const order: number[] = []
  for (const { groups } of claims) for (const { positions } of groups.values()) order.push(...positions)
  order.push(...others)
  return told.map((position) => order[position] as number).concat(repeats)
}

/** The keys are handed to handlers, as ids; the records are not. */
function splitJobs(text: string): string[] {
  const jobs = text.split(SEPARATOR)
  for (let at = 0; at < jobs.length; at += 2) jobs[at] = detached(jobs[at] as string)
  return jobs
}
