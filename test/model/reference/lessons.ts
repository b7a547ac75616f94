import type { FinishedJob, Lesson } from '../../../src/store/scripts/finish-and-claim.ts'
import { OpenBucket } from './bucket.ts'
import { freeSlot } from './ending.ts'
import { limitsAt, limitsOf } from './limits.ts'
import type { OpenLimit } from './open-limit.ts'
import { learnPushback, shareOf } from './pushback.ts'
import type { QueueState } from './queue-state.ts'
import { OpenQuota } from './quota.ts'

/** What a worker tells of answers, once its jobs have ended. Each job here has one lesson at most, of its own tenant. */
export function learnAll(queue: QueueState, finished: readonly FinishedJob[]): void {
  for (const job of finished) if (job.lesson) learn(queue, job, job.lesson)
}

function learn(queue: QueueState, { place, standing, fence }: FinishedJob, lesson: Lesson): void {
  const { upstream, pushback, reading, member } = lesson
  const tenant = queue.tenant(place.tenantToken)
  const own = limitsOf(queue, tenant).filter(({ isShare }) => !isShare)
  const scopes = [own, limitsAt(queue, standing), limitsAt(queue, 'queue')]
  if (pushback) {
    const limit = upstream === '' ? narrowest(scopes) : scopes.flat().find(({ rule }) => rule.name === upstream)
    if (limit) close(queue, limit, Number(fence), (pushback.retryAfterMs ?? 0) * 1000)
  }
  if (!reading) return
  const quotas = scopes.flat().filter(({ rule }) => rule.kind === 'quota')
  const isKnown = upstream === '' || scopes.flat().some(({ rule }) => rule.name === upstream)
  const quota = quotas.find(({ rule }) => rule.name === upstream) ?? (isKnown ? quotas[0] : undefined)
  if (!(quota?.meter instanceof OpenQuota)) return
  const reset = queue.now + reading.resetInMs * 1000
  if (quota.meter.learn(member, reading.remaining, reset, reading.limit ?? 0)) quota.save()
  freeSlot(queue, tenant)
}

function close(queue: QueueState, limit: OpenLimit, fence: number, forUs: number): void {
  const { now } = queue
  const closedUntil = forUs > 0 ? now + Math.min(forUs, queue.values.max_close) : 0
  limit.pushed = learnPushback(limit.pushed, fence, closedUntil, now, queue.fence)
  limit.savePushback()
  limit.meter.closedUntil = Math.max(limit.meter.closedUntil, limit.pushed.closedUntil)
  if (limit.meter instanceof OpenBucket && limit.meter.slow(shareOf(limit.pushed, now))) limit.save()
}

/** Of the first scope that meters calls; where none does, of the first that has any. */
function narrowest(scopes: readonly (readonly OpenLimit[])[]): OpenLimit | undefined {
  const metering = scopes
    .map((limits) => limits.filter(({ rule }) => rule.kind !== 'concurrency'))
    .find((limits) => limits.length > 0)
  const [first] = [...(metering ?? scopes.find((limits) => limits.length > 0) ?? [])].sort(byWidth)
  return first
}

const kinds = ['bucket', 'window', 'quota', 'concurrency']

function byWidth({ rule: a }: OpenLimit, { rule: b }: OpenLimit): number {
  const windowOf = (rule: typeof a) => ('window' in rule ? rule.window : 3_600_000_000)
  const countOf = (rule: typeof a) => ('count' in rule ? rule.count : 0)
  return windowOf(a) - windowOf(b) || kinds.indexOf(a.kind) - kinds.indexOf(b.kind) || countOf(a) - countOf(b)
}
