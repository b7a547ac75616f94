import { actionOfLane, type Level } from '../../../src/store/names.ts'
import { entriesPerJob, type SubmitLine, type SubmitReply } from '../../../src/store/scripts/submit-jobs.ts'
import { actionOfPlace, note, putOffSeal } from './acting.ts'
import { type Action, isClosed } from './action.ts'
import { digitsOf, rankAll } from './congestion.ts'
import { limitsOver } from './limits.ts'
import type { QueueState } from './queue-state.ts'
import { rebase, settle } from './standing.ts'
import { type Job, Tenant } from './tenant.ts'

export function submit(queue: QueueState, lines: readonly SubmitLine[], now: number): SubmitReply {
  queue.begin(now)
  const costly = findCostly(queue, lines)
  if (costly) return { accepted: 0, duplicates: 0, firsts: [], full: [], closed: [], costly }
  queue.hasCosts ||= lines.some((line) => costsOf(line).some((cost) => cost > 1))
  let accepted = 0
  let duplicates = 0
  const firsts: string[] = []
  const full: { line: number; dealtWith: number }[] = []
  const closed: number[] = []
  lines.forEach((line, index) => {
    const tenant = queue.tenant(line.tenant)
    if (line.basePriority !== undefined) rebase(tenant, line.basePriority)
    const action = actionOfPlace(queue, line)
    if (actionOfLane(line.lane) !== undefined && (!action || isClosed(action))) {
      firsts.push('0')
      closed.push(index)
      settle(queue, tenant)
      return
    }
    const width = entriesPerJob[line.kind]
    const count = line.entries.length / width
    let first: string | undefined
    let dealtWith = 0
    for (; dealtWith < count; dealtWith++) {
      const entry = line.entries.slice(dealtWith * width, (dealtWith + 1) * width)
      const text = entry.at(-1) as string
      const digest = (line.kind === 'named' ? entry[0] : line.kind === 'later' ? entry[1] : '') as string
      if (digest !== '' && knownId(queue, digest, action)) {
        duplicates += 1
        continue
      }
      if (roomOf(queue, tenant) === 0) break
      const job = newJob(queue, tenant, line, digest, text)
      if (line.kind === 'later') {
        const instant = entry[0] as string
        job.state = 'delayed'
        job.at = (instant.startsWith('+') ? now : 0) + Number(instant.slice(1))
      }
      first ??= job.sequence
      accepted += 1
    }
    if (action) {
      action.received += dealtWith
      putOffSeal(queue, action)
      note(queue, action)
    }
    firsts.push(first ?? '0')
    if (dealtWith < count) full.push({ line: index, dealtWith })
    settle(queue, tenant)
  })
  queue.count('submitted', accepted)
  queue.end()
  rankAll(queue)
  return { accepted, duplicates, firsts, full, closed, costly: undefined }
}

function costOf(text: string): number {
  return Number(/^\*(\d+);/.exec(text)?.[1] ?? 1)
}

function costsOf({ kind, entries }: SubmitLine): number[] {
  const width = entriesPerJob[kind]
  return entries.filter((_, at) => at % width === width - 1).map(costOf)
}

/** The first job that costs more than some limit could ever grant, and the limit that could grant least. */
function findCostly(queue: QueueState, lines: readonly SubmitLine[]): SubmitReply['costly'] {
  for (const [line, each] of lines.entries()) {
    const tenant = queue.tenants.find(({ name }) => name === each.tenant) ?? new Tenant(each.tenant)
    const counts = limitsOver(queue, tenant, tenant.override ?? (each.level as Level)).flatMap(({ rule }) =>
      'count' in rule ? [{ limit: rule.name, most: rule.count }] : [],
    )
    const [least] = counts.sort((a, b) => a.most - b.most)
    const job = least ? costsOf(each).findIndex((cost) => cost > least.most) : -1
    if (least && job >= 0) return { line, job, ...least }
  }
  return undefined
}

function newJob(queue: QueueState, tenant: Tenant, line: SubmitLine, digest: string, text: string): Job {
  const level = line.level as Level
  const isLater = line.kind === 'later'
  const lane = tenant.lane(level, line.lane)
  let sequence: string
  if (isLater) sequence = `0${queue.tick()}`
  else {
    lane.next ??= queue.tick()
    sequence = String(lane.next)
    lane.next += 1
  }
  const job: Job = {
    key: `${level}:${line.lane}:${sequence}:${tenant.name}`,
    level,
    lane: line.lane,
    tenant: tenant.name,
    action: actionOfPlace(queue, line),
    sequence,
    digest,
    cost: costOf(text),
    rest: text.slice(text.indexOf('\n') + 1),
    members: new Map(),
    history: undefined,
    state: 'waiting',
    at: 0,
    reason: '',
    ended: undefined,
    isLingering: false,
    isCanceling: false,
    fence: '',
    standing: level,
  }
  if (queue.pendingOf(tenant) === 0) tenant.total = 0
  tenant.total += 1
  queue.jobs.push(job)
  if (digest !== '') queue.ids.set(idIn(digest, job.action), { period: periodOf(queue), job })
  if (!isLater) {
    lane.list.push(job)
    const waiting = queue.jobsOf(tenant.name, 'waiting').length
    tenant.hasGrown ||= digitsOf(waiting) > digitsOf(waiting - 1)
    tenant.joinTurns(lane)
  }
  return job
}

function roomOf(queue: QueueState, tenant: Tenant): number {
  const isPending = (job: Job): boolean => job.state === 'waiting' || job.state === 'delayed'
  const pending = queue.jobs.filter(isPending)
  const { max_pending: ofQueue, max_pending_tenant: ofTenant } = queue.values
  const left = ofQueue > 0 ? ofQueue - pending.length : Number.POSITIVE_INFINITY
  const own = pending.filter((job) => job.tenant === tenant.name).length
  return Math.max(0, Math.min(left, ofTenant > 0 ? ofTenant - own : Number.POSITIVE_INFINITY))
}

/** Whom a caller means who names the job as it was submitted: an id may have been forgotten, and given again. */
export function addressed(queue: QueueState, job: Job, now: number): Job | undefined {
  queue.now = now
  if (job.digest === '') return job
  const action = actionOfPlace(queue, job)
  return job.action && !action ? undefined : knownId(queue, job.digest, action)
}

/** One of an action is known as long as the action is. */
function knownId(queue: QueueState, digest: string, action: Action | undefined): Job | undefined {
  const found = queue.ids.get(idIn(digest, action))
  return found && (action || periodOf(queue) - found.period <= 1) ? found.job : undefined
}

/** The same id in another action, or outside of any, is another. */
function idIn(digest: string, action: Action | undefined): string {
  return action ? `${action.name}:${action.createdAt}:${digest}` : digest
}

function periodOf(queue: QueueState): number {
  return Math.floor(queue.now / (queue.values.keep_ids / 2))
}
