import { type Level, levels } from '../../../src/store/names.ts'
import { actionOfPlace, meet, note, startJobs } from './acting.ts'
import type { Budget } from './budget.ts'
import type { Claim } from './claim.ts'
import { keepMark } from './marks.ts'
import type { QueueState } from './queue-state.ts'
import { isOrdered, isSuspect, type Job, type Lane, remaining, type Tenant, textOf } from './tenant.ts'

/** From as many lanes as it needs; with an override, of all levels. */
export function takeTurn(
  queue: QueueState,
  claim: Claim,
  tenant: Tenant,
  standing: Level,
  wanted: number,
  budget?: Budget,
): { taken: Job[]; isHeld: boolean; served: Lane | undefined } {
  const taken: Job[] = []
  let isHeld = false
  let served: Lane | undefined
  for (const level of tenant.override === undefined ? [standing] : levels) {
    if (taken.length >= wanted || tenant.turns[level].length === 0) continue
    // Nobody passes one that costs more than there is.
    if (budget?.need !== undefined || budget?.isUsedUp) break
    const line = takeLine(queue, claim, tenant, level, wanted, taken, budget)
    isHeld ||= line.isHeld
    served = line.served
  }
  return { taken, isHeld, served }
}

function takeLine(
  queue: QueueState,
  claim: Claim,
  tenant: Tenant,
  level: Level,
  wanted: number,
  taken: Job[],
  budget: Budget | undefined,
): { isHeld: boolean; served: Lane | undefined } {
  const turns = tenant.turns[level]
  let served: Lane | undefined
  while (taken.length < wanted && turns[0]) {
    const lane = turns[0]
    const most = isOrdered(lane.token) ? taken.length + 1 : wanted
    const before = taken.length
    const action = actionOfPlace(queue, { tenant: tenant.name, lane: lane.token })
    if (action) meet(queue, action)
    let isHeld = takeJobs(queue, claim, lane.front, most, taken, budget)
    // What never ran may pass one that is held back, but not where order is promised, nor one that costs too much.
    if (!isHeld || !(isOrdered(lane.token) || budget))
      isHeld = takeJobs(queue, claim, lane.list, most, taken, budget) || isHeld
    if (taken.length > before) served = lane
    if (action && taken.length > before) startJobs(queue, action)
    if (isOrdered(lane.token) && taken.length > before) {
      lane.busy = taken[before]
      turns.shift()
    } else if (remaining(lane) === 0) {
      turns.shift()
    } else if (isHeld || claim.bytesLeft <= 0) {
      return { isHeld: true, served }
    }
  }
  return { isHeld: false, served }
}

/** Answers whether the first that is left is held back: one suspect at a time, and none that costs too much. */
function takeJobs(
  queue: QueueState,
  claim: Claim,
  line: Job[],
  most: number,
  taken: Job[],
  budget: Budget | undefined,
): boolean {
  while (taken.length < most && line[0] && claim.bytesLeft > 0) {
    const job = line[0]
    if (isSuspect(job) && claim.hasSuspect) {
      claim.metSuspect = true
      return true
    }
    if (job.state !== 'canceled' && budget && !budget.takes(job.cost)) return true
    line.shift()
    if (job.state === 'canceled') {
      const action = job.action
      if (action) note(queue, action)
      else keepMark(queue, job)
      continue
    }
    claim.hasSuspect ||= isSuspect(job)
    claim.bytesLeft -= textOf(job).length
    taken.push(job)
  }
  return false
}
