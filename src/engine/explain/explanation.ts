import type { Level } from '../../store/names.ts'
import type { DeadReason, DelayReason, WaitReason } from '../../store/reasons.ts'
import type { ActionState } from '../../store/scripts/open-action.ts'
import type { JobState } from '../../store/scripts/read-job.ts'
import type { LimitRow } from '../../store/scripts/read-limits.ts'
import type { LimitScope } from '../../store/settings.ts'

interface AnyGate {
  /** Whether it lets work pass now. */
  readonly open: boolean
  /** Since when it has said what it says, in ms since 1970 by the clock of Redis; undefined: not known. */
  readonly since: number | undefined
  /** When it opens by itself; undefined: nobody knows, or it is open. */
  readonly until: number | undefined
  /** What it says, in a sentence. */
  readonly text: string
}

/** One thing that a job must pass before it runs, with its values at this moment. */
export type Gate = AnyGate &
  (
    | { readonly gate: 'queue' }
    | { readonly gate: 'level'; readonly level: Level }
    | { readonly gate: 'tenant' }
    | { readonly gate: 'work'; readonly waiting: number; readonly delayed: number; readonly running: number }
    | { readonly gate: 'action'; readonly action: string; readonly state: ActionState; readonly isSealed: boolean }
    | {
        readonly gate: 'job'
        readonly state: JobState
        /** Of a delayed job, and of one that came back; of a dead letter why it died. */
        readonly reason: DelayReason | DeadReason | undefined
        /** Of a running one: who has it, under which fence, and until when it is theirs. */
        readonly client: string | undefined
        readonly fence: string | undefined
        readonly leaseUntil: number | undefined
        readonly attempts: number | undefined
      }
    | {
        readonly gate: 'lane'
        readonly lane: string | undefined
        /** Jobs of the same lane that go first. */
        readonly ahead: number
        /** Lanes of the tenant that take turns on this level, and those among them that go first. */
        readonly lanes: number
        readonly lanesBefore: number
        /** Jobs that ordered lanes wait for. */
        readonly busyWith: readonly string[]
      }
    | { readonly gate: 'parked'; readonly reason: WaitReason | undefined; readonly limit: string | undefined }
    | {
        readonly gate: 'limit'
        readonly scope: LimitScope
        readonly name: string
        readonly kind: LimitRow['kind']
        readonly limit: number
        readonly used: number
        readonly remaining: number
        /** What the job asked about costs; of a tenant, its next one. */
        readonly cost: number
        /** What it grants now when it is always asked; undefined without a rate. */
        readonly effectivePerSecond: number | undefined
        /** Redis had lost what a window had counted: part of what is used was assumed. */
        readonly isEstimated: boolean
        /** Who says no: the limit, or an upstream that pushed back and has closed it. Undefined: it grants. */
        readonly reason: WaitReason | undefined
      }
    | {
        readonly gate: 'turn'
        readonly level: Level
        /** 1 is next; undefined: it is not in line. */
        readonly place: number | undefined
        readonly inLine: number
        readonly score: number | undefined
        readonly overdue: boolean
      }
    | {
        readonly gate: 'workers'
        /** Processes known to wait for work, and those that hold jobs. */
        readonly idle: number
        readonly busy: number
        readonly running: number
        readonly lastClaimAt: number | undefined
      }
  )

/** Why something does not run now. */
export interface Explanation {
  readonly tenant: string
  /** The job's id; undefined where a tenant was asked about. */
  readonly job: string | undefined
  /** The level on which it stands; undefined for a tenant with nothing to do. */
  readonly level: Level | undefined
  /** The moment this was true, in ms since 1970 by the clock of Redis. */
  readonly at: number
  /** Every gate on the way, in the order in which a claim meets them. */
  readonly gates: readonly Gate[]
  /** The first of them that says no; undefined: nothing holds it back. */
  readonly binds: Gate | undefined
  /** Since when that binds. */
  readonly since: number | undefined
  /** When all that say no will have opened by themselves; undefined: not known. `at` when nothing says no. */
  readonly mayRunAt: number | undefined
  /** The answer in one line. */
  readonly text: string
}

/** Puts the answer on top of its gates. */
export function explanationOf(
  subject: Pick<Explanation, 'tenant' | 'job' | 'level' | 'at'>,
  gates: Gate[],
): Explanation {
  const closed = gates.filter(({ open }) => !open)
  const [binds] = closed
  const instants = closed.map(({ until }) => until ?? Number.POSITIVE_INFINITY)
  const latest = Math.max(subject.at, ...instants)
  return {
    ...subject,
    gates,
    binds,
    since: binds?.since,
    mayRunAt: latest === Number.POSITIVE_INFINITY ? undefined : latest,
    text: binds?.text ?? 'Nothing holds it back: it runs as soon as a worker claims.',
  }
}

/** For people: the answer, then every gate with what it says. */
export function describeExplanation(explanation: Explanation): string {
  const lines = explanation.gates.map((gate) => {
    const mark = gate.open ? 'yes' : gate === explanation.binds ? 'NO ' : 'no '
    return `  ${mark}  ${gate.gate.padEnd(7)}  ${gate.text}`
  })
  return [explanation.text, ...lines].join('\n')
}
