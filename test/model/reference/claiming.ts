import { type Level, levels } from '../../../src/store/names.ts'
import type { ClaimReply, ClaimRequest } from '../../../src/store/scripts/finish-and-claim.ts'
import { judge } from './acting.ts'
import { NEVER } from './bucket.ts'
import { Budget } from './budget.ts'
import { type Claim, linesOf, newClaim, overdueIndex } from './claim.ts'
import { rankAll, rollPace, rollTenant } from './congestion.ts'
import { trimOld } from './ending.ts'
import { finishAll } from './finishing.ts'
import { byInstant } from './leases.ts'
import { charge, freshMs, limitsAt, limitsOf, noticeServer, openLimits, shortestKept } from './limits.ts'
import { batchInstant, least, type OpenLimit, reasonOf } from './open-limit.ts'
import type { Lease, QueueState } from './queue-state.ts'
import {
  DUE_AT_ONCE,
  type DueTenant,
  dueJobs,
  dueTenants,
  fallDue,
  liftedTenants,
  reap,
  STALLED_AT_ONCE,
  settleGivenBack,
} from './recovery.ts'
import { newScore, park, settle, unpark } from './standing.ts'
import { takeTurn } from './taking.ts'
import { claimedTextOf, type Job, type Lane, type Stand, type Tenant } from './tenant.ts'
import { advance, LOOKS, nextTurn, type Turn } from './turns.ts'

/** Tenants that are held and keep their place, and when a claim that met nobody else is to be repeated. */
const MOST_HELD = 32
const AFTER_HELD_US = 100_000

export function finishAndClaim(queue: QueueState, client: string, request: ClaimRequest, now: number): ClaimReply {
  queue.begin(now)
  noticeServer(queue)
  openLimits(queue)
  const duties = [...queue.duties.values()]
  const before = {
    duties,
    leases: [...queue.leases],
    jobs: dueJobs(queue),
    since: overdueIndex(queue),
    lines: linesOf(queue),
  }
  const lifted = liftedTenants(queue)
  const due = dueTenants(queue)
  const ready = queue.tenants.flatMap(({ stands }) => levels.filter((level) => stands[level].present)).length
  const givenBack: Job[] = []
  const ended = new Set<string>()
  const stale = finishAll(queue, client, request.finished, givenBack, ended)
  const isTooLate = now > (request.takesBackUntilUs ?? NEVER)
  const leftAtUs = isTooLate && before.leases.some(({ until }) => until <= now) ? now : undefined
  const broughtBack = isTooLate ? 0 : reap(queue, givenBack, ended)
  fallDue(queue, before.jobs)
  for (const tenant of lifted) unpark(queue, tenant)
  settleGivenBack(queue, givenBack)
  judge(queue)

  const claim = newClaim(queue, request, before)
  const open = queue.paused.queue === 0 ? levels.filter((level) => isServed(queue, request, level)) : []
  const isEachBack = claimInSteps(queue, claim, { due, ready }, open)
  for (const stand of claim.misplaced) stand.indexedSince = stand.since
  if (claim.jobs.length > 0) {
    queue.count('claimed', claim.jobs.length)
    rollPace(queue.pace, now, queue.started)
    queue.started += claim.jobs.length
    const fence = String(claim.fence)
    queue.leases.push({ fence, client, until: now + request.leaseMs * 1000, jobs: [...claim.jobs] })
    queue.leases.sort(byInstant)
  }

  const areBounded = broughtBack >= STALLED_AT_ONCE || before.jobs.length >= DUE_AT_ONCE || !isEachBack
  const isBounded = (claim.looks >= LOOKS && claim.heldLooks < claim.looks) || areBounded
  const isAgain = claim.left > 0 && claim.jobs.length === 0 && isBounded
  let wait: number | undefined
  if (request.idleForMs > 0 && claim.left > 0) {
    const instant = nextInstant(queue, claim, before.leases, before.duties)
    if (isBounded && !isAgain) wait = 0
    else if (instant < NEVER) wait = Math.max(0, instant - now)
  }
  trimOld(queue)
  const snapshot = queue.values.snapshot
  const isDue = now >= queue.snapshotDue || now + snapshot < queue.snapshotDue
  const isToRecord = request.wanted > 0 && isDue && queue.jobs.some(({ state }) => state === 'waiting')
  if (isToRecord) queue.snapshotDue = now + snapshot
  queue.end()
  rankAll(queue)
  return {
    word: claim.jobs.length > 0 ? 'claimed' : isAgain ? 'again' : 'idle',
    stale,
    waitMs: wait === undefined ? undefined : wait / 1000,
    holdsAlarm: false,
    fence: String(claim.fence),
    freshMs: freshMs(claim.fresh),
    jobs: claim.jobs.flatMap((job) => [job.key, claimedTextOf(job)]),
    hasDuties: [...before.duties, ...queue.duties.values()].some((due) => due <= now),
    // Schedules are not part of the model: see decision 25.
    hasTicks: false,
    kept: keptOf(queue, claim),
    isToRecord,
    leftAtUs,
  }
}

/** Lanes of claimed jobs whose action keeps results. */
function keptOf(queue: QueueState, { jobs }: Claim): string[] {
  const claimed = new Set(jobs.map((job) => job.action))
  return [...queue.script.met]
    .filter((action) => claimed.has(action) && action.rules.keepResults)
    .map(({ rules, tenant }) => `${rules.lane}:${tenant}`)
}

/** Parked tenants come back as hands are free, by their share of all who may run. False when as many came as may at once. */
function claimInSteps(
  queue: QueueState,
  claim: Claim,
  { due, ready }: { due: readonly DueTenant[]; ready: number },
  open: readonly Level[],
): boolean {
  let from = 0
  do {
    const turns = Math.ceil(claim.left / queue.values.quantum)
    const step = Math.max(1, Math.ceil((turns * due.length) / (ready + due.length)))
    const came = due.slice(from, Math.min(from + step, DUE_AT_ONCE))
    from += came.length
    for (const each of came) bringBack(queue, claim, each)
    for (const level of open) if (!claim.isClosed && !claim.saving.has(level)) claimLevel(queue, claim, level, open)
  } while (from < due.length && claim.left > 0 && !claim.isClosed && from < DUE_AT_ONCE)
  return from < DUE_AT_ONCE || from >= due.length
}

/** Unless it was back before, and may be parked anew. */
function bringBack(queue: QueueState, claim: Claim, { tenant, parking }: DueTenant): void {
  if (tenant.parking !== parking) return
  unpark(queue, tenant)
  for (const level of levels) {
    const { present, score } = tenant.stands[level]
    if (present) claim.lines[level].push({ name: tenant.name, score })
  }
}

function isServed(queue: QueueState, request: ClaimRequest, level: Level): boolean {
  return request.levels.split(' ').includes(level) && queue.paused[level] === 0
}

function claimLevel(queue: QueueState, claim: Claim, level: Level, open: readonly Level[]): void {
  while (claim.left > 0 && claim.looks < LOOKS && claim.bytesLeft > 0) {
    const ofQueue = least(limitsAt(queue, 'queue'))
    if (ofQueue.permits === 0) {
      claim.isClosed = true
      if (open.some((each) => queue.weights[each] > 0)) denyOnce(queue, claim, ofQueue.last)
      claim.waitUntil = batchInstant(limitsAt(queue, 'queue'), claim.left)
      return
    }
    let ofLevel = least(limitsAt(queue, level))
    if (ofLevel.permits === 0) {
      if (queue.weights[level] > 0) denyOnce(queue, claim, ofLevel.last)
      claim.waitUntil = Math.min(claim.waitUntil, batchInstant(limitsAt(queue, level), claim.left))
      return
    }
    const turn = nextTurn(queue, claim, level, open)
    if (!turn) return
    claim.looks += 1
    if (turn.level !== level) ofLevel = least(limitsAt(queue, turn.level))
    serve(queue, claim, turn, Math.min(ofQueue.permits, ofLevel.permits))
    if (claim.isClosed || claim.saving.has(level)) return
  }
}

function serve(queue: QueueState, claim: Claim, { name, level, isGuarded }: Turn, allowed: number): void {
  const tenant = queue.tenant(name)
  const stand = tenant.stands[level]
  // Parked by its turn on another level of this very claim.
  if (!stand.present) return
  const own = limitsOf(queue, tenant)
  const free = least(own)
  if (free.permits === 0) {
    stand.used = 0
    parkFor(queue, tenant, free)
    return
  }
  const size = queue.values.quantum * tenant.weight * 1000
  const rest = Math.ceil((size - stand.used) / 1000)
  const budget = queue.hasCosts ? new Budget(queue, tenant, level, rest) : undefined
  const wanted = budget ? Math.min(claim.left, budget.slots) : Math.min(claim.left, rest, allowed, free.permits)
  claim.metSuspect = false
  const { taken, isHeld, served } = takeTurn(queue, claim, tenant, level, wanted, budget)
  if (taken.length === 0 && budget?.need !== undefined) {
    saveUp(queue, claim, { tenant, stand, level }, budget)
    return
  }
  const got = taken.length
  if (got > 0) {
    if (claim.fence === 0) claim.fence = queue.nextFence()
    for (const job of taken) {
      job.state = 'running'
      job.standing = level
      job.fence = String(claim.fence)
      claim.jobs.push(job)
    }
    claim.left -= got
    const permits = budget?.spent ?? got
    charge(queue, tenant, level, { taken, permits, fence: claim.fence })
    const kept = shortestKept(queue, tenant, level)
    if (kept !== undefined) claim.fresh = Math.min(claim.fresh ?? kept, kept)
    rollTenant(queue, tenant, stand)
    tenant.costs += permits - got
    account(queue, stand, level, permits)
    advance(queue, tenant, level, permits)
  }
  const isOver = stand.used >= size || (isGuarded && got > 0)
  if (isOver) {
    stand.used = Math.max(0, Math.floor(stand.used - size))
    // Only a lane that has had its turn goes behind the others.
    const turns = tenant.turns[served?.level ?? level]
    if (turns.length > 1 && turns[0] === served) turns.push(turns.shift() as Lane)
  }
  settle(queue, tenant)
  if (!stand.present) return
  const left = least(own)
  if (isOver || (left.permits === 0 && got > 0)) stand.score = newScore(queue, tenant)
  if (left.permits === 0) {
    stand.used = 0
    parkFor(queue, tenant, left)
  } else if ((!isHeld || budget?.isUsedUp) && (got > 0 || isOver)) {
    claim.lines[level].push({ name, score: stand.score })
  } else if (got === 0 && claim.metSuspect) {
    passOver(queue, claim, tenant, stand)
  }
}

/** Only a suspect is left of it, and the process runs one. Beyond a few, such tenants go to the end of the line. */
function passOver(queue: QueueState, claim: Claim, tenant: Tenant, stand: Stand): void {
  claim.held += 1
  if (claim.held <= MOST_HELD) {
    claim.looks -= 1
    return
  }
  claim.heldLooks += 1
  stand.score = newScore(queue, tenant)
  if (claim.heldLooks === LOOKS) claim.waitUntil = Math.min(claim.waitUntil, queue.now + AFTER_HELD_US)
}

/** The next job costs more than there is: the tenant waits for it, or where the queue or its level lacks it, all do. */
function saveUp(
  queue: QueueState,
  claim: Claim,
  { tenant, stand, level }: { tenant: Tenant; stand: Stand; level: Level },
  budget: Budget,
): void {
  const lacking = budget.lacking()
  if (!lacking) throw new Error('nobody lacks what was not there')
  if (lacking.scope === 'tenant') {
    stand.used = 0
    parkFor(queue, tenant, lacking)
    return
  }
  denyOnce(queue, claim, lacking.last)
  const isOfQueue = lacking.scope === 'queue'
  claim.saving.add(level)
  claim.isClosed = isOfQueue
  claim.waitUntil = isOfQueue ? lacking.until : Math.min(claim.waitUntil, lacking.until)
}

/** Of the queue's and the levels' limits each counts once in a claim. */
function denyOnce(queue: QueueState, claim: Claim, limit: OpenLimit | undefined): void {
  if (!limit || claim.denied.has(limit)) return
  claim.denied.add(limit)
  queue.count(`denied:${limit.countedAs}/${reasonOf(limit, queue.now)}`)
}

function parkFor(
  queue: QueueState,
  tenant: Tenant,
  { until, last }: { readonly until: number; readonly last: OpenLimit | undefined },
): void {
  if (!last) return
  queue.count(`denied:${last.countedAs}/${reasonOf(last, queue.now)}`)
  park(queue, tenant, until, last.rule.name)
}

function account(queue: QueueState, stand: Stand, level: Level, got: number): void {
  queue.virtual[level] += Math.floor((got * 1e9) / Math.max(queue.weights[level], 1))
  stand.received += got
  stand.longestWait = Math.max(stand.longestWait, queue.now - stand.since)
  stand.since = queue.now
  stand.used += got * 1000
}

/** When the next claim can bring anything. Leases and duties are those of before this claim. */
function nextInstant(queue: QueueState, claim: Claim, leases: readonly Lease[], duties: readonly number[]): number {
  const later = (instants: readonly number[]): number => Math.min(NEVER, ...instants.filter((at) => at > queue.now))
  const expiry = later([...leases.map(({ until }) => until), ...duties])
  if (claim.isClosed) return Math.min(claim.waitUntil, expiry)
  const parked = later(queue.tenants.flatMap(({ parking }) => (parking && !parking.isLifted ? [parking.until] : [])))
  // What was postponed by this very claim may be due already.
  const due = queue.jobs.filter(({ state, isLingering }) => state === 'delayed' || isLingering).map(({ at }) => at)
  return Math.min(claim.waitUntil, expiry, parked, ...due)
}
