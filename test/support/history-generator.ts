import fc from 'fast-check'
import type { CheckerOptions } from './checker.ts'
import { type Happening, type HistoryEvent, inOrder, type JobState, type SubmittedJob } from './history.ts'

/** What becomes of one delivery of a job before its last one. */
type Setback = 'crash' | 'zombie' | 'failed' | 'throttled' | 'released'

interface JobPlan {
  tenant: string
  lane?: string
  ordered?: boolean
  delayMs: number
  runMs: number
  setbacks: readonly Setback[]
  ending: 'succeeded' | 'dead'
  /** `lost` is a submit without an answer that stored nothing, `unheard` one that did. */
  submit: 'ok' | 'unheard' | 'lost' | 'fail' | 'twice'
}

export const LIMIT = { permits: 3, windowMs: 300 }
const TENANT_LIMIT = { permits: 3, windowMs: 300, tenant: 'a' }
const HANDS = 3

export const CHECKED: CheckerOptions = {
  leaseMs: 1_000,
  toleranceMs: 20,
  clockToleranceMs: 2,
  livenessMs: 30_000,
  limits: [LIMIT, TENANT_LIMIT],
  concurrency: [{ max: HANDS }],
}

/** One arrival per step keeps any three of them from a fourth within the window. */
const STEP_MS = 101
const REDIS_EPOCH_MS = 1_700_000_000_000

const plain: JobPlan = { tenant: 'a', delayMs: 0, runMs: 5, setbacks: [], ending: 'succeeded', submit: 'ok' }

/** One job of each sort, so that every mutation finds what it needs in every history. */
const OF_EACH_SORT: readonly JobPlan[] = [
  ...Array.from({ length: 8 }, () => plain),
  { ...plain, lane: 'plain' },
  { ...plain, lane: 'plain' },
  { ...plain, lane: 'ordered', ordered: true, runMs: 150 },
  { ...plain, lane: 'ordered', ordered: true },
  { ...plain, tenant: 'b', setbacks: ['failed'] },
  { ...plain, tenant: 'b', setbacks: ['throttled'] },
  { ...plain, setbacks: ['released'] },
  { ...plain, ending: 'dead' },
  { ...plain, delayMs: 400 },
  { ...plain, submit: 'unheard' },
  { ...plain, submit: 'lost' },
  { ...plain, submit: 'fail' },
  { ...plain, submit: 'twice' },
  { ...plain, runMs: 1_500 },
]
const OF_EACH_FAULT: readonly JobPlan[] = [
  { ...plain, tenant: 'c', setbacks: ['crash'] },
  { ...plain, tenant: 'c', setbacks: ['zombie'] },
]

function jobPlan(setbacks: readonly Setback[]): fc.Arbitrary<JobPlan> {
  return fc.record({
    tenant: fc.constantFrom('a', 'b', 'c'),
    delayMs: fc.constantFrom(0, 0, 50, 700),
    runMs: fc.constantFrom(1, 20, 150, 1_200),
    setbacks: fc.array(fc.constantFrom(...setbacks), { maxLength: 3 }),
    ending: fc.constantFrom('succeeded', 'succeeded', 'dead'),
    submit: fc.constantFrom('ok', 'ok', 'unheard', 'lost', 'fail', 'twice'),
  })
}

/** Histories in which everything is as promised. */
export function correctHistory({ faults }: { faults: boolean }): fc.Arbitrary<HistoryEvent[]> {
  const setbacks: Setback[] = ['failed', 'throttled', 'released', ...(faults ? (['crash', 'zombie'] as const) : [])]
  const sorts = faults ? [...OF_EACH_SORT, ...OF_EACH_FAULT] : OF_EACH_SORT
  return fc.array(jobPlan(setbacks), { maxLength: 12 }).map((more) => play([...sorts, ...more]))
}

interface Pending {
  job: string
  plan: JobPlan
  readyAt: number
  setbacks: Setback[]
  /** The job of the lane that has to start (or end, if ordered) before. */
  before: string | undefined
}

/** Plays a plan: a producer, three hands, one arrival at the upstream per step, fences that rise. */
function play(plans: readonly JobPlan[]): HistoryEvent[] {
  const events: HistoryEvent[] = []
  const sequences = new Map<string, number>()
  const write = (process: string, at: number, happening: Happening) => {
    const sequence = (sequences.get(process) ?? 0) + 1
    sequences.set(process, sequence)
    events.push({ ...happening, process, sequence, at })
  }

  const pending = submitAll(plans, write)
  const freeAt = Array.from({ length: HANDS }, () => 0)
  const started = new Map<string, number>()
  const ended = new Map<string, number>()
  const finals = new Map<string, JobState>(plans.map((_, i) => [`job-${i}`, 'unknown']))
  let arrival = 0
  let fence = 10n
  let faulty = 0
  while (pending.length > 0) {
    const next = takeNext(pending, { started, ended })
    const hand = freeAt.indexOf(Math.min(...freeAt))
    const at = Math.max(next.readyAt, freeAt[hand] as number, arrival + STEP_MS)
    arrival = at + 1
    const setback = next.setbacks.shift()
    const isFault = setback === 'crash' || setback === 'zombie'
    const worker = isFault ? `worker-faulty-${++faulty}` : `worker-${hand}`
    const { job } = next
    const held = { job, fence: String(++fence) }
    write(worker, at - 0.5, { kind: 'claim', ...held, ...lease(at - 0.5) })
    write(worker, at, { kind: 'start', ...held, tenant: next.plan.tenant })
    const until = isFault ? at + 3 : at + next.plan.runMs
    write('upstream', at + 1, { kind: 'effect', ...held, tenant: next.plan.tenant, until: Math.max(until, at + 1) })
    if (!started.has(job)) started.set(job, at)
    freeAt[hand] = until + 1

    if (isFault) {
      const again = at - 0.5 + CHECKED.leaseMs + 2
      if (setback === 'crash') write('nemesis', at + 5, { kind: 'nemesis', phase: 'begin', fault: 'kill', worker })
      else {
        write('nemesis', at + 5, { kind: 'nemesis', phase: 'begin', fault: 'stop', worker })
        const awake = at + CHECKED.leaseMs * 2
        write('nemesis', awake, { kind: 'nemesis', phase: 'end', fault: 'stop', worker })
        write(worker, awake + 1, { kind: 'end', ...held, result: 'succeeded' })
        write(worker, awake + 2, { kind: 'outcome', ...held, result: 'succeeded', answer: 'stale' })
      }
      pending.push({ ...next, readyAt: again })
      continue
    }
    for (let renewed = at + 300; renewed < until; renewed += 300) {
      write(worker, renewed, { kind: 'renew', ...held, until: REDIS_EPOCH_MS + renewed + CHECKED.leaseMs })
    }
    const result = setback ?? next.plan.ending
    write(worker, until, { kind: 'end', ...held, result })
    write(worker, until + 0.5, { kind: 'outcome', ...held, result, answer: 'accepted' })
    if (setback !== undefined) pending.push({ ...next, readyAt: until + 1 })
    else {
      ended.set(job, until)
      finals.set(job, result === 'succeeded' ? 'succeeded' : 'failed')
    }
  }

  finish(finals, write)
  return inOrder(events)
}

type Write = (process: string, at: number, happening: Happening) => void

function submitAll(plans: readonly JobPlan[], write: Write): Pending[] {
  const pending: Pending[] = []
  const lastOfLane = new Map<string, string>()
  let call = 0
  let at = 1
  plans.forEach((plan, i) => {
    const job = `job-${i}`
    const { tenant, delayMs, lane, ordered } = plan
    const spec: SubmittedJob = { job, tenant, delayMs, ...(lane && { lane }), ...(ordered && { ordered }) }
    const isStored = plan.submit !== 'lost' && plan.submit !== 'fail'
    for (let copy = 0; copy < (plan.submit === 'twice' ? 2 : 1); copy++) {
      write('producer', at, { kind: 'submit', phase: 'invoke', call: ++call, jobs: [spec] })
      const phase = plan.submit === 'fail' ? 'fail' : isStored && plan.submit !== 'unheard' ? 'ok' : 'unknown'
      write('producer', at + 0.5, { kind: 'submit', phase, call })
      if (isStored && copy === 0) {
        const before = lane === undefined ? undefined : lastOfLane.get(`${tenant} ${lane}`)
        if (lane !== undefined) lastOfLane.set(`${tenant} ${lane}`, job)
        pending.push({ job, plan, readyAt: at + 1 + delayMs, setbacks: [...plan.setbacks], before })
      }
      at += 1
    }
  })
  return pending
}

function takeNext(
  pending: Pending[],
  { started, ended }: { started: Map<string, number>; ended: Map<string, number> },
): Pending {
  const open = (entry: Pending): number => {
    if (entry.before === undefined) return entry.readyAt
    const gate = (entry.plan.ordered ? ended : started).get(entry.before)
    return gate === undefined ? Number.POSITIVE_INFINITY : Math.max(entry.readyAt, gate)
  }
  const next = pending.reduce((best, entry) => (open(entry) < open(best) ? entry : best))
  pending.splice(pending.indexOf(next), 1)
  return { ...next, readyAt: open(next) }
}

function lease(at: number): { from: number; until: number } {
  return { from: REDIS_EPOCH_MS + at, until: REDIS_EPOCH_MS + at + CHECKED.leaseMs }
}

function finish(finals: ReadonlyMap<string, JobState>, write: Write): void {
  const counts: Record<string, number> = { waiting: 0, delayed: 0, running: 0, succeeded: 0, failed: 0, canceled: 0 }
  const at = 1_000_000
  for (const [job, state] of finals) {
    write('test', at, { kind: 'final', job, state })
    if (state in counts) counts[state] = (counts[state] as number) + 1
  }
  write('test', at, { kind: 'counts', counts })
}
