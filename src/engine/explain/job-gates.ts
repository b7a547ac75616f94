import type { JobPlace } from '../../store/job-place.ts'
import type { DeadReason, DelayReason } from '../../store/reasons.ts'
import type { JobFacts } from '../../store/scripts/explain-job.ts'
import type { ActionState } from '../../store/scripts/open-action.ts'
import type { Gate } from './explanation.ts'
import { moment } from './moments.ts'

/** The gates that are a job's own. */

export function actionGate({ now, job }: JobFacts, place: JobPlace): Gate[] {
  const { action } = job
  if (!action || place.action === undefined) return []
  const state = action.state as ActionState
  const isOver = state === 'COMPLETED' || state === 'FAILED' || state === 'CANCELED'
  const shared = { gate: 'action', action: place.action, state, isSealed: action.is_sealed, until: undefined } as const
  if (!isOver) {
    const sealed = action.is_sealed ? 'sealed' : 'open for more jobs'
    return [{ ...shared, open: true, since: undefined, text: `its action "${place.action}" is ${state}, ${sealed}` }]
  }
  const when = action.ended === undefined ? 'and forgotten' : moment(action.ended, now)
  const text = `Its action "${place.action}" is ${state}, ${when}: nothing of it starts any more.`
  return [{ ...shared, open: false, since: action.ended, text }]
}

export function jobGate(facts: JobFacts): Gate {
  const { job } = facts
  const { state, client, fence, lease: leaseUntil, attempts } = job
  const reason = job.died_of ?? job.reason ?? (state === 'delayed' ? 'scheduled' : undefined)
  const shared = { gate: 'job', state, reason, client, fence, leaseUntil, attempts } as const
  const since = sinceWhen(facts, reason)
  const until = state === 'delayed' ? job.due : undefined
  return { ...shared, open: state === 'waiting', since, until, text: sentence(facts, reason) }
}

function sinceWhen(facts: JobFacts, reason: DelayReason | DeadReason | undefined): number | undefined {
  const { state, claimed, since } = facts.job
  if (state === 'running') return claimed
  if (state !== 'delayed') return undefined
  return reason === 'scheduled' ? createdAt(facts.job) : since
}

function createdAt(job: JobFacts['job']): number | undefined {
  return job.created === undefined ? undefined : Number.parseInt(job.created, 36)
}

const reasons: Readonly<Partial<Record<DelayReason | DeadReason, string>>> = {
  retry: 'it failed and is tried again',
  upstream: 'the upstream pushed it back',
  scheduled: 'it was submitted for later',
  'unknown-type': 'no worker that met it knows its type',
  stall: 'the lease of its worker ran out',
}

function sentence({ now, job }: JobFacts, reason: DelayReason | DeadReason | undefined): string {
  switch (job.state) {
    case 'waiting':
      return reason ? `it waits; it came back: ${reasons[reason] ?? reason}` : 'it waits'
    case 'delayed': {
      const why = (reason && reasons[reason]) ?? reason
      return `Delayed until ${moment(job.due ?? now, now)}: ${why} (${reason}; ${job.attempts ?? 0} runs have failed).`
    }
    case 'running': {
      const canceling = job.is_canceling ? ' It is cancelled, and its worker was told.' : ''
      const lease = job.lease === undefined ? '' : `, leased until ${moment(job.lease, now)}`
      return `It runs since ${moment(job.claimed ?? now, now)} at ${job.client} under fence ${job.fence}${lease}.${canceling}`
    }
    case 'failed':
      return `It is a dead letter (${reason}): it runs again only if somebody retries it.`
    case 'succeeded':
      return 'It has succeeded.'
    case 'canceled':
      return 'It was cancelled.'
  }
}

/** Undefined where the job does not wait in its lane. */
export function laneGate({ job }: JobFacts, place: JobPlace): Gate[] {
  const { lane } = job
  if (!lane) return []
  const { ahead, lanes, lanes_before: lanesBefore, busy } = lane
  const since = job.since ?? createdAt(job)
  const busyWith = busy === undefined ? [] : [busy]
  const shared = { gate: 'lane', lane: place.lane, ahead, lanes, lanesBefore, busyWith } as const
  const others = lanesBefore > 0 ? `; ${lanesBefore} of its tenant's ${lanes} lanes have their turn first` : ''
  const rest = { since: undefined, until: undefined }
  if (busy !== undefined) {
    const text = `Its lane "${place.lane}" is ordered and waits for ${busy} to end; ${ahead} jobs stand before it.`
    return [{ ...shared, ...rest, open: false, text }]
  }
  if (ahead === 0) return [{ ...shared, ...rest, open: true, text: `first in its lane "${place.lane}"${others}` }]
  const text = `${ahead} jobs of its lane "${place.lane}" go before it${others}.`
  return [{ ...shared, ...rest, since, open: false, text }]
}
