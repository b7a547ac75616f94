import { type Level, levels } from '../../store/names.ts'
import { NEVER } from './instants.ts'
import { available, batchInstant, closedUntil } from './meters.ts'
import type { Place } from './sorted-line.ts'
import { advance, insert, type Lines, LOOKS, nextTurn, type Turn } from './turns.ts'
import type { VirtualQueue } from './virtual-queue.ts'
import type { VirtualJob, VirtualTenant } from './virtual-tenant.ts'

/** What the limits allow, and which jobs that is: as claiming.lua and comeback.lua decide it. */

const BACK_AT_ONCE = 64

/** A claim, and what came of it. */
export interface Claim {
  /** Hands that are free. */
  left: number
  looks: number
  readonly jobs: VirtualJob[]
  readonly lines: Lines
  /** A limit of the queue has nothing more to grant. */
  isClosed: boolean
  waitUntil: number
  /** Not everybody could be looked at. */
  isBounded: boolean
}

/** @param inLine - Tenants in line when the script began. */
export function claimJobs(queue: VirtualQueue, wanted: number, inLine: number): Claim {
  const claim: Claim = {
    left: wanted,
    looks: 0,
    jobs: [],
    lines: { high: { next: 0, extra: [] }, normal: { next: 0, extra: [] }, low: { next: 0, extra: [] } },
    isClosed: false,
    waitUntil: NEVER,
    isBounded: false,
  }
  const due = queue.parked.countUpTo(queue.now)
  let isEachBack = true
  if (due > 0) isEachBack = claimInSteps(queue, claim, due, inLine)
  else claimLevels(queue, claim)
  claim.isBounded = claim.looks >= LOOKS || !isEachBack
  return claim
}

/** Parked tenants come back as hands are free, by their share of all who may run. */
function claimInSteps(queue: VirtualQueue, claim: Claim, due: number, inLine: number): boolean {
  let back = 0
  do {
    const turns = Math.ceil(claim.left / queue.values.quantum)
    const step = Math.max(1, Math.ceil((turns * due) / (inLine + due)))
    const to = Math.min(due, back + Math.min(step, BACK_AT_ONCE - back))
    for (; back < to; back++) {
      // What a script parks and unparks is written when it ends: until then all keep their places.
      const { of: tenant, score } = queue.parked.at(back) as Place<VirtualTenant>
      if (tenant.parkedUntil === score) queue.unpark(tenant)
    }
    claimLevels(queue, claim)
  } while (back < due && claim.left > 0 && !claim.isClosed && back < BACK_AT_ONCE)
  return back < BACK_AT_ONCE || back >= due
}

function claimLevels(queue: VirtualQueue, claim: Claim): void {
  for (const tenant of queue.entered) if (tenant.isInLine && !tenant.isReady) insert(claim, tenant)
  queue.entered = []
  for (const level of levels) if (!claim.isClosed) claimLevel(queue, claim, level)
}

/** Serves one level until it has nobody, the limits close it or the hands are full. */
function claimLevel(queue: VirtualQueue, claim: Claim, level: Level): void {
  const { limits, now } = queue
  while (claim.left > 0 && claim.looks < LOOKS) {
    const ofQueue = available(limits.queue, now)
    if (ofQueue === 0) {
      claim.isClosed = true
      claim.waitUntil = batchInstant(limits.queue, claim.left, now)
      return
    }
    let ofLevel = available(limits[level], now)
    if (ofLevel === 0) {
      claim.waitUntil = Math.min(claim.waitUntil, batchInstant(limits[level], claim.left, now))
      return
    }
    const turn = nextTurn(queue, claim, level)
    if (!turn) return
    claim.looks += 1
    if (turn.tenant.level !== level) ofLevel = available(limits[turn.tenant.level], now)
    serve(queue, claim, turn, Math.min(ofQueue, ofLevel))
  }
}

/** One tenant's turn, or what is left of it. It goes back in line unless it is empty or parked. */
function serve(queue: VirtualQueue, claim: Claim, { tenant, isGuarded }: Turn, allowed: number): void {
  const { now } = queue
  const free = available(tenant.meters, now)
  if (free === 0) {
    queue.park(tenant, closedUntil(tenant.meters, now))
    return
  }
  const size = queue.values.quantum * tenant.weight * 1000
  const rest = Math.ceil((size - tenant.used) / 1000)
  const got = take(queue, claim, tenant, Math.min(claim.left, rest, allowed, free))
  if (got > 0) {
    start(queue, claim, tenant, got)
    advance(queue, tenant, got)
  }
  const isOver = tenant.used >= size || (isGuarded && got > 0)
  if (isOver) {
    tenant.used = tenant.used > size ? Math.floor(tenant.used - size) : 0
    if (got > 0) rotate(claim, tenant)
  }
  if (!tenant.hasWork) {
    queue.settle(tenant)
    return
  }
  const left = available(tenant.meters, now)
  if (isOver || (left === 0 && got > 0)) tenant.score = queue.newScore(tenant)
  if (left === 0) queue.park(tenant, closedUntil(tenant.meters, now))
  else if (got > 0 || isOver) insert(claim, tenant)
}

/** From as many of its lanes as it takes. */
function take(queue: VirtualQueue, claim: Claim, tenant: VirtualTenant, count: number): number {
  let got = 0
  while (got < count) {
    const [lane] = tenant.turns
    if (!lane) break
    got += lane.take(tenant, count - got, claim.jobs)
    if (lane.remaining > 0) continue
    tenant.turns.shift()
    queue.noteEmptied(lane)
  }
  return got
}

function start(queue: VirtualQueue, claim: Claim, tenant: VirtualTenant, got: number): void {
  const { level } = tenant
  const { now, limits } = queue
  claim.left -= got
  for (const meter of limits.queue) meter.charge(got, now)
  for (const meter of limits[level]) meter.charge(got, now)
  for (const meter of tenant.meters) meter.charge(got, now)
  tenant.waiting -= got
  tenant.running += got
  queue.waiting -= got
  queue.running += got
  queue.runningAt[level] += got
  queue.virtual[level] += Math.floor((got * 1e9) / Math.max(queue.weights[level], 1))
  tenant.longestWait = Math.max(tenant.longestWait, now - tenant.since)
  tenant.received += got
  tenant.used += got * 1000
  tenant.since = now
}

/** Only a lane that has had its turn goes behind the others. */
function rotate({ jobs }: Claim, { turns }: VirtualTenant): void {
  const served = jobs[jobs.length - 1]?.lane
  if (turns.length > 1 && turns[0] === served) turns.push(turns.shift() as (typeof turns)[number])
}
