import { parseJobKey } from '../../store/job-place.ts'
import { fromToken } from '../../store/names.ts'
import type { Requests } from '../../store/requests.ts'
import { explainJob } from '../../store/scripts/explain-job.ts'
import { explainTenant } from '../../store/scripts/explain-tenant.ts'
import type { JobAddress } from '../../store/scripts/read-job.ts'
import { type Explanation, explanationOf } from './explanation.ts'
import { actionGate, jobGate, laneGate } from './job-gates.ts'
import {
  lanesGate,
  levelGate,
  limitGates,
  parkedGate,
  pauseGate,
  queueGate,
  standOf,
  turnGate,
  workersGate,
  workGate,
} from './tenant-gates.ts'

/** Why no further job of a tenant runs now. @param token - The tenant's. */
export async function whyTenantWaits(requests: Requests, token: string): Promise<Explanation> {
  const { facts, limits } = await explainTenant(requests, token)
  const stand = standOf(facts, facts.level)
  const subject = { tenant: fromToken(token), job: undefined, level: stand?.level, at: facts.now }
  return explanationOf(subject, [
    queueGate(facts),
    ...(stand ? [levelGate(facts, stand.level)] : []),
    pauseGate(facts),
    workGate(facts),
    lanesGate(facts, stand),
    parkedGate(facts, limits),
    ...limitGates(facts, limits, stand?.level),
    ...(stand ? [turnGate(facts, stand)] : []),
    workersGate(facts),
  ])
}

/** Why a job does not run now; undefined: there is no such job. @param id - As the caller knows it. */
export async function whyJobWaits(
  requests: Requests,
  address: JobAddress,
  id: string,
): Promise<Explanation | undefined> {
  const found = await explainJob(requests, address)
  const place = found && parseJobKey(found.facts.job.key)
  if (!found || !place) return undefined
  const { facts, limits } = found
  const { state } = facts.job
  const level = facts.tenant.override ?? place.level
  const subject = { tenant: place.tenant, job: id, level, at: facts.now }
  const own = [...actionGate(facts, place), jobGate(facts)]
  // What runs or has ended has passed the others, or will never come to them.
  if (state !== 'waiting' && state !== 'delayed') return explanationOf(subject, own.reverse())
  const stand = standOf(facts, level)
  return explanationOf(subject, [
    queueGate(facts),
    levelGate(facts, level),
    pauseGate(facts),
    ...own,
    ...laneGate(facts, place),
    parkedGate(facts, limits),
    ...limitGates(facts, limits, level),
    ...(stand && state === 'waiting' ? [turnGate(facts, stand)] : []),
    workersGate(facts),
  ])
}
