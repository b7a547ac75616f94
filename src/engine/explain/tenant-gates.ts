import type { Level } from '../../store/names.ts'
import type { StandFacts, TenantFacts } from '../../store/scripts/explain-tenant.ts'
import type { LimitRow } from '../../store/scripts/read-limits.ts'
import { ratePerSecond } from '../limit-status.ts'
import type { Gate } from './explanation.ts'
import { lasting, moment } from './moments.ts'

/** The gates of a queue and a tenant: what all jobs of the tenant on one level pass. */

const pass = { open: true, since: undefined, until: undefined } as const

export function queueGate({ now, queue }: TenantFacts): Gate {
  if (queue.paused === undefined) return { gate: 'queue', ...pass, text: 'the queue is not paused' }
  const text = `The queue has been paused since ${moment(queue.paused, now)}.`
  return { gate: 'queue', open: false, since: queue.paused, until: undefined, text }
}

export function levelGate({ now, queue }: TenantFacts, level: Level): Gate {
  const since = queue.levels_paused[level]
  if (since === undefined) return { gate: 'level', level, ...pass, text: `level ${level} is not paused` }
  const text = `Level ${level} has been paused since ${moment(since, now)}.`
  return { gate: 'level', level, open: false, since, until: undefined, text }
}

export function pauseGate({ now, tenant }: TenantFacts): Gate {
  const { paused } = tenant
  if (paused === undefined) return { gate: 'tenant', ...pass, text: 'the tenant is not paused' }
  const text = `The tenant has been paused since ${moment(paused, now)}.`
  return { gate: 'tenant', open: false, since: paused, until: undefined, text }
}

export function workGate({ tenant }: TenantFacts): Gate {
  const { waiting, delayed, running } = tenant
  const open = waiting > 0
  const others = `${running} running, ${delayed} delayed`
  const text = open ? `${waiting} jobs wait, ${others}` : `Nothing of it waits: ${others}.`
  return { gate: 'work', waiting, delayed, running, open, since: undefined, until: undefined, text }
}

/** Of a tenant: whether any of its lanes takes turns. */
export function lanesGate({ tenant }: TenantFacts, stand: StandFacts | undefined): Gate {
  const busyWith = Array.isArray(tenant.busy) ? tenant.busy : []
  const lanes = stand?.lanes ?? 0
  const shared = { gate: 'lane', lane: undefined, ahead: 0, lanes, lanesBefore: 0, busyWith } as const
  if (stand || tenant.waiting === 0) return { ...shared, ...pass, text: `lanes that take turns: ${lanes}` }
  const text = `Its lanes are ordered, and each waits for a job to end first: ${busyWith.join(', ') || 'none is known'}.`
  return { ...shared, open: false, since: undefined, until: undefined, text }
}

/** Who says no: the limit itself, or an upstream that pushed back and has closed it. */
function reasonOf({ pushedForUs }: LimitRow): 'limit' | 'upstream' {
  return pushedForUs > 0 ? 'upstream' : 'limit'
}

export function parkedGate({ now, tenant }: TenantFacts, rows: readonly LimitRow[]): Gate {
  const { parked } = tenant
  if (!parked) return { gate: 'parked', reason: undefined, limit: undefined, ...pass, text: 'it is not parked' }
  const { limit, since } = parked
  const row = rows.find(({ scope, name }) => scope === 'tenant' && name === limit)
  const reason = row ? reasonOf(row) : 'limit'
  const shared = { gate: 'parked', reason, limit, open: false, since } as const
  if (parked.is_lifted) {
    const text = `Limit "${limit}" parked it, and has changed or was lifted since: the next claims put it back in line.`
    return { ...shared, until: now, text }
  }
  const { until_ms: until } = parked
  const when = until === undefined ? 'until one of its jobs ends' : `until ${moment(until, now)}`
  const why = reason === 'upstream' ? ', because its upstream pushed back' : ''
  return { ...shared, until, text: `Limit "${limit}" has parked it ${when}${why}.` }
}

/** Those that a job on this level stands under, in the order in which a claim asks them. */
export function limitGates(facts: TenantFacts, rows: readonly LimitRow[], level: Level | undefined): Gate[] {
  return rows
    .filter(({ scope }) => scope === 'queue' || scope === 'tenant' || scope === level)
    .map((row) => limitGate(row, facts))
}

/** What a bucket grants now, where that is less than its definition lets expect, and why. */
function slowness(row: LimitRow): string {
  const { kind, share, jitterUs, definedJitterUs } = row
  const why = [
    ...(share < 1_000 ? ['its upstream pushed back'] : []),
    ...(jitterUs > definedJitterUs ? [`calls go out late: ${jitterUs / 1_000} ms are allowed for`] : []),
  ]
  if (kind !== 'bucket' || why.length === 0) return ''
  return ` at ${Number((ratePerSecond(row) ?? 0).toPrecision(3))}/s (${why.join('; ')})`
}

const owners = { queue: 'of the queue', tenant: 'of the tenant', high: 'of level high' } as const

function limitGate(row: LimitRow, { now, cost, closed_limits: closed }: TenantFacts): Gate {
  const { scope, name, kind, limit, used, available: remaining } = row
  const whose = owners[scope as keyof typeof owners] ?? `of level ${scope}`
  // Of what costs more it can have some left, and too little.
  const open = remaining > 0 && row.opensInUs === 0
  const reason = open ? undefined : reasonOf(row)
  const rate = { effectivePerSecond: ratePerSecond(row), isEstimated: row.isEstimated }
  const shared = { gate: 'limit', scope, name, kind, limit, used, remaining, cost, reason, ...rate } as const
  const assumed = row.isEstimated ? ' (in part assumed, Redis had lost the count)' : ''
  const figures = `${kind} of ${limit}${slowness(row)}, ${used} used${assumed}, ${remaining} left`
  if (open) return { ...shared, ...pass, text: `limit "${name}" ${whose} grants: ${figures}` }
  // `now` is cut to whole ms: a window that ends at midnight would end a moment before.
  const until = row.opensInUs > 0 ? Math.ceil(now + row.opensInUs / 1000) : undefined
  const when = until === undefined ? 'until a job ends or it is told more' : `until ${moment(until, now)}`
  const why = reason === 'upstream' ? ', because its upstream pushed back' : ''
  const refusal = remaining > 0 ? `does not grant the ${cost} permits that the job costs` : 'grants nothing'
  return {
    ...shared,
    open,
    since: closed[`${scope}/${name}`],
    until,
    text: `Limit "${name}" ${whose} ${refusal} ${when}${why}: ${figures}.`,
  }
}

/** Whoever is not first waits for the others only while nobody has a free hand. */
export function turnGate({ now, queue, workers }: TenantFacts, stand: StandFacts): Gate {
  const { level, rank, ready: inLine, score, overdue, since } = stand
  const place = rank === undefined ? undefined : rank + 1
  const shared = { gate: 'turn', level, place, inLine, score, overdue } as const
  if (place === undefined) {
    const text = `out of line on level ${level} for as long as a gate above says no`
    return { ...shared, ...pass, text }
  }
  const late = overdue
    ? `; overdue by the guard (${lasting(queue.max_wait)}): one of the next ten turns is its own`
    : ''
  const where = `${place} of ${inLine} in line on level ${level}, able to run since ${moment(since ?? now, now)}${late}`
  const open = place === 1 || workers.idle > 0
  return { ...shared, open, since, until: undefined, text: open ? where : `It is number ${where}.` }
}

export function workersGate({ now, queue, workers }: TenantFacts): Gate {
  const { idle, busy, running } = workers
  const lastClaimAt = queue.last_claim
  const shared = { gate: 'workers', idle, busy, running, lastClaimAt, until: undefined } as const
  const last = lastClaimAt === undefined ? 'no job was ever claimed' : `last claim ${moment(lastClaimAt, now)}`
  if (idle > 0) return { ...shared, open: true, since: undefined, text: `processes that wait for work: ${idle}` }
  if (busy > 0) {
    const text = `All hands known are full: ${busy} processes hold ${running} jobs; ${last}.`
    return { ...shared, open: false, since: lastClaimAt, text }
  }
  const text = `Nobody claims: no process waits for work or holds any; ${last}. Is a worker running that serves this level?`
  return { ...shared, open: false, since: lastClaimAt, text }
}

export function standOf({ tenant }: TenantFacts, level: Level | undefined): StandFacts | undefined {
  const stands: readonly StandFacts[] = Array.isArray(tenant.stands) ? tenant.stands : []
  return stands.find((each) => each.level === level)
}
