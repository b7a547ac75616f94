import type { Check, CheckerOptions } from './checker.ts'
import type { Happening, HistoryEvent, JobState } from './history.ts'
import { CHECKED, LIMIT } from './history-generator.ts'

export interface Mutant {
  /** What went wrong in the world that this history records. */
  name: string
  /** The check that has to notice; others may too. */
  check: Check
  /** Whether the history it starts from contains faults. */
  faults: boolean
  break: (history: History) => HistoryEvent[]
  options?: Partial<CheckerOptions>
}

type Of<K extends HistoryEvent['kind']> = Extract<HistoryEvent, { kind: K }>
type Change = Partial<Record<string, unknown>>

/** A correct history with the handles that mutations need: jobs by what became of them, and edits. */
export class History {
  readonly events: readonly HistoryEvent[]

  constructor(events: readonly HistoryEvent[]) {
    this.events = events
  }

  of<K extends HistoryEvent['kind']>(kind: K, job?: string): Of<K>[] {
    return this.events.filter(
      (event): event is Of<K> => event.kind === kind && (job === undefined || ('job' in event && event.job === job)),
    )
  }

  /** The first job whose deliveries ended like this, in this order; `fault` for one that ended by a fault. */
  jobWith(...results: string[]): string {
    const jobs = new Set(this.of('start').map(({ job }) => job))
    const found = [...jobs].find((job) => {
      const ends = this.of('start', job).map((start) => this.resultOf(start))
      return ends.length === results.length && ends.every((end, i) => end === results[i])
    })
    return must(found, `a job with ${results.join(', ')}`)
  }

  resultOf(start: Of<'start'>): string {
    const outcome = this.of('outcome', start.job).find(({ fence }) => fence === start.fence)
    if (outcome?.answer === 'accepted') return outcome.result
    return outcome === undefined ? 'crash' : 'zombie'
  }

  submitted(phase: 'ok' | 'unknown' | 'fail', { ran }: { ran: boolean }): string {
    const invokes = this.of('submit').filter((event) => event.phase === 'invoke')
    const found = invokes.find((invoke) => {
      const answer = this.of('submit').find((event) => event.call === invoke.call && event.phase !== 'invoke')
      const job = invoke.phase === 'invoke' ? invoke.jobs[0]?.job : undefined
      return answer?.phase === phase && job !== undefined && this.of('start', job).length > 0 === ran
    })
    return must(found?.phase === 'invoke' ? found.jobs[0]?.job : undefined, `a submit with ${phase}`)
  }

  callOf(job: string): number {
    const invoke = this.of('submit').find((event) => event.phase === 'invoke' && event.jobs[0]?.job === job)
    return must(invoke, `the submit of ${job}`).call
  }

  laneMates(lane: string): [string, string] {
    const jobs = this.of('submit').flatMap((event) => (event.phase === 'invoke' ? event.jobs : []))
    const [first, second] = jobs.filter((job) => job.lane === lane)
    return [must(first, lane).job, must(second, lane).job]
  }

  without(...gone: readonly (HistoryEvent | undefined)[]): HistoryEvent[] {
    return this.events.filter((event) => !gone.includes(event))
  }

  with(...more: readonly HistoryEvent[]): HistoryEvent[] {
    return [...this.events, ...more]
  }

  change(pick: (event: HistoryEvent) => boolean, change: Change | ((event: HistoryEvent) => Change)): HistoryEvent[] {
    return this.events.map((event) => {
      if (!pick(event)) return event
      return { ...event, ...(typeof change === 'function' ? change(event) : change) } as HistoryEvent
    })
  }

  changeFinal(job: string, state: JobState): HistoryEvent[] {
    return this.change((event) => event.kind === 'final' && event.job === job, { state })
  }

  changeCounts(change: (counts: Readonly<Record<string, number>>) => Record<string, number>): HistoryEvent[] {
    return this.change(
      (event) => event.kind === 'counts',
      (event) => ({ counts: { ...(event as Of<'counts'>).counts, ...change((event as Of<'counts'>).counts) } }),
    )
  }

  /** Another run of a job, by another worker, under a given fence. */
  run(job: string, { at, fence, accepted = true }: { at: number; fence: string; accepted?: boolean }): HistoryEvent[] {
    const process = 'worker-extra'
    const tenant = must(this.of('start', job)[0], job).tenant
    const held = { job, fence, process }
    const result = 'succeeded' as const
    const events: (Happening & { process: string; at: number })[] = [
      { kind: 'start', ...held, tenant, at },
      { kind: 'end', ...held, result, at: at + 1 },
      { kind: 'outcome', ...held, result, answer: accepted ? 'accepted' : 'unknown', at: at + 2 },
    ]
    return events.map((event, i) => ({ ...event, sequence: 1_000 + i }))
  }

  starts(job: string): [Of<'start'>, Of<'start'>] {
    const [first, second] = this.of('start', job)
    return [must(first, `a first start of ${job}`), must(second, `a second start of ${job}`)]
  }

  only<K extends HistoryEvent['kind']>(kind: K, job: string): Of<K> {
    return must(this.of(kind, job)[0], `${kind} of ${job}`)
  }
}

const HIGHEST_FENCE = '999999'
const LATE = 500_000

function higherFence(start: Of<'start'>): string {
  return String(BigInt(start.fence) + 1_000_000n)
}

function must<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`the history has no ${what}`)
  return value
}

function isUnder(start: Of<'start'>): (event: HistoryEvent) => boolean {
  return (event) => 'fence' in event && event.job === start.job && event.fence === start.fence
}

export const MUTANTS: readonly Mutant[] = [
  // C1: no loss
  {
    name: 'an acknowledged job has no final state',
    check: 'C1',
    faults: true,
    break: (h) => h.without(h.only('final', h.jobWith('succeeded'))),
  },
  ...(['waiting', 'delayed', 'running', 'unknown'] as const).map(
    (state): Mutant => ({
      name: `an acknowledged job is ${state} at the end`,
      check: 'C1',
      faults: true,
      break: (h) => h.changeFinal(h.jobWith('succeeded'), state),
    }),
  ),
  {
    name: 'an acknowledged job leaves no trace at all',
    check: 'C1',
    faults: true,
    break: (h) => {
      const job = h.jobWith('succeeded')
      return h.events.filter((event) => !('job' in event && event.job === job))
    },
  },
  {
    name: 'a job counts as succeeded and no handler ended',
    check: 'C1',
    faults: true,
    break: (h) => h.without(h.only('end', h.jobWith('succeeded'))),
  },
  {
    name: 'a job counts as succeeded and its only handler failed',
    check: 'C1',
    faults: false,
    break: (h) => h.changeFinal(h.jobWith('dead'), 'succeeded'),
  },
  {
    name: 'a job of an unanswered submit is begun and never ends',
    check: 'C1',
    faults: true,
    break: (h) => h.changeFinal(h.submitted('unknown', { ran: true }), 'running'),
  },
  {
    name: 'a job of an unanswered submit is stored and never begun',
    check: 'C1',
    faults: true,
    break: (h) => h.changeFinal(h.submitted('unknown', { ran: false }), 'waiting'),
  },
  {
    name: 'an acknowledged job is lost with the worker that crashed',
    check: 'C1',
    faults: true,
    break: (h) => {
      const job = h.jobWith('crash', 'succeeded')
      const [, second] = h.starts(job)
      return new History(h.events.filter((event) => !isUnder(second)(event))).changeFinal(job, 'running')
    },
  },
  // C2: no phantom
  {
    name: 'a job runs whose submit nobody called',
    check: 'C2',
    faults: true,
    break: (h) => {
      const call = h.callOf(h.jobWith('succeeded'))
      return h.events.filter((event) => !(event.kind === 'submit' && event.call === call))
    },
  },
  {
    name: 'a job runs that was refused',
    check: 'C2',
    faults: true,
    break: (h) => {
      const call = h.callOf(h.jobWith('succeeded'))
      return h.change((event) => event.kind === 'submit' && event.phase === 'ok' && event.call === call, {
        phase: 'fail',
      })
    },
  },
  {
    name: 'an unknown job starts',
    check: 'C2',
    faults: true,
    break: (h) => h.with({ ...must(h.of('start')[0], 'start'), job: 'phantom', fence: HIGHEST_FENCE, at: LATE }),
  },
  {
    name: 'an unknown job reaches the upstream',
    check: 'C2',
    faults: true,
    break: (h) => h.with({ ...must(h.of('effect')[0], 'effect'), job: 'phantom', at: LATE, until: LATE }),
  },
  {
    name: 'an unknown job is counted as succeeded',
    check: 'C2',
    faults: true,
    break: (h) => h.with({ ...must(h.of('final')[0], 'final'), job: 'phantom', state: 'succeeded' }),
  },
  {
    name: 'a refused job is kept',
    check: 'C2',
    faults: true,
    break: (h) => h.changeFinal(h.submitted('fail', { ran: false }), 'waiting'),
  },
  {
    name: 'a job runs before it is submitted',
    check: 'C2',
    faults: false,
    break: (h) => h.change((event) => event === h.only('start', h.jobWith('succeeded')), { at: 0 }),
  },
  // C3: justified redelivery
  {
    name: "a crashed worker's job runs again before its lease ran out",
    check: 'C3',
    faults: true,
    break: (h) => {
      const [first, second] = h.starts(h.jobWith('crash', 'succeeded'))
      return h.change((event) => event === second, { at: first.at + CHECKED.leaseMs / 2 })
    },
  },
  {
    name: 'a job runs again although no fault hit its worker',
    check: 'C3',
    faults: true,
    break: (h) => {
      const [first] = h.starts(h.jobWith('crash', 'succeeded'))
      return h.events.filter((event) => !(event.kind === 'nemesis' && event.worker === first.process))
    },
  },
  {
    name: 'a job whose fault hit another worker runs again',
    check: 'C3',
    faults: true,
    break: (h) => {
      const [first] = h.starts(h.jobWith('crash', 'succeeded'))
      return h.change((event) => event.kind === 'nemesis' && event.worker === first.process, { worker: 'worker-else' })
    },
  },
  {
    name: 'a job that has succeeded runs once more',
    check: 'C3',
    faults: false,
    break: (h) => {
      const start = h.only('start', h.jobWith('succeeded'))
      return h.with(...h.run(start.job, { at: LATE, fence: higherFence(start), accepted: false }))
    },
  },
  ...(['failed', 'throttled', 'released'] as const).map(
    (setback): Mutant => ({
      name: `a job runs again and was never ${setback}`,
      check: 'C3',
      faults: false,
      break: (h) => {
        const [first] = h.starts(h.jobWith(setback, 'succeeded'))
        return h.events.filter((event) => !(isUnder(first)(event) && ['end', 'outcome'].includes(event.kind)))
      },
    }),
  ),
  {
    name: 'a renewed job runs again when its first lease would have ended',
    check: 'C3',
    faults: true,
    break: (h) => {
      const [first, second] = h.starts(h.jobWith('crash', 'succeeded'))
      const renew: HistoryEvent = { ...first, kind: 'renew', at: first.at + 200 }
      return [...h.events, renew].map((event) => (event === second ? { ...event, at: first.at + 1_050 } : event))
    },
  },
  // C4: lease exclusion
  {
    name: 'a lease is given while another is valid, by the time of Redis',
    check: 'C4',
    faults: true,
    break: (h) => {
      const job = h.jobWith('crash', 'succeeded')
      const [first] = h.of('claim', job)
      return h.change((event) => event.kind === 'claim' && event.job === job && event !== first, {
        from: must(first?.until, 'a lease') - 1,
      })
    },
  },
  {
    name: 'a zombie ends the job under its old fence',
    check: 'C4',
    faults: true,
    break: (h) => {
      const [first] = h.starts(h.jobWith('zombie', 'succeeded'))
      return h.change((event) => event.kind === 'outcome' && isUnder(first)(event), { answer: 'accepted', at: LATE })
    },
  },
  {
    name: 'a zombie gives the job back under its old fence',
    check: 'C4',
    faults: true,
    break: (h) => {
      const [first] = h.starts(h.jobWith('zombie', 'succeeded'))
      return h.change(
        (event) => (event.kind === 'end' || event.kind === 'outcome') && isUnder(first)(event),
        (event) => ({ result: 'failed', at: LATE, ...(event.kind === 'outcome' && { answer: 'accepted' }) }),
      )
    },
  },
  {
    name: 'two workers run a job at the same time',
    check: 'C4',
    faults: false,
    break: (h) => {
      const long = must(
        h.of('start').find((start) => h.of('renew', start.job).length > 0),
        'long run',
      )
      return h.with(...h.run(long.job, { at: long.at + 50, fence: higherFence(long), accepted: false }))
    },
  },
  {
    name: 'a retry starts while the run before still goes on',
    check: 'C4',
    faults: false,
    break: (h) => {
      const [first, second] = h.starts(h.jobWith('failed', 'succeeded'))
      return h
        .change((event) => event.kind === 'end' && isUnder(first)(event), { at: second.at + 500 })
        .map((event) => (event.kind === 'outcome' && isUnder(first)(event) ? { ...event, at: second.at + 501 } : event))
    },
  },
  // C5: fences
  {
    name: 'two deliveries have one fence',
    check: 'C5',
    faults: false,
    break: (h) => {
      const [first, second] = h.starts(h.jobWith('failed', 'succeeded'))
      return h.change(isUnder(second), { fence: first.fence })
    },
  },
  {
    name: 'a claim is delivered to two hands',
    check: 'C5',
    faults: false,
    break: (h) => {
      const start = h.only('start', h.jobWith('succeeded'))
      return h.with({ ...start, process: 'worker-extra', at: start.at + 0.1 })
    },
  },
  {
    name: 'the fence of a retry is lower than that of the run before',
    check: 'C5',
    faults: false,
    break: (h) => {
      const [first, second] = h.starts(h.jobWith('failed', 'succeeded'))
      return h.change(
        (event) => isUnder(first)(event) || isUnder(second)(event),
        (event) => ({ fence: isUnder(first)(event) ? second.fence : first.fence }),
      )
    },
  },
  {
    name: 'an older fence is accepted after a newer one',
    check: 'C5',
    faults: true,
    break: (h) => {
      const [first] = h.starts(h.jobWith('zombie', 'succeeded'))
      return h.change((event) => event.kind === 'outcome' && isUnder(first)(event), { answer: 'accepted', at: LATE })
    },
  },
  {
    name: 'an end is accepted under a fence nobody was given',
    check: 'C5',
    faults: false,
    break: (h) => h.change((event) => event === h.only('outcome', h.jobWith('succeeded')), { fence: HIGHEST_FENCE }),
  },
  {
    name: 'the upstream is called under a fence nobody was given',
    check: 'C5',
    faults: false,
    break: (h) => h.change((event) => event === h.only('effect', h.jobWith('succeeded')), { fence: HIGHEST_FENCE }),
  },
  // C6: one terminal state
  {
    name: 'a completion is counted twice',
    check: 'C6',
    faults: false,
    break: (h) => {
      const outcome = h.only('outcome', h.jobWith('succeeded'))
      return h.with({ ...outcome, at: outcome.at + 1 })
    },
  },
  {
    name: 'two fences complete one job',
    check: 'C6',
    faults: true,
    break: (h) => {
      const [first] = h.starts(h.jobWith('zombie', 'succeeded'))
      return h.change((event) => event.kind === 'outcome' && isUnder(first)(event), { answer: 'accepted' })
    },
  },
  {
    name: 'a job is in two final states',
    check: 'C6',
    faults: false,
    break: (h) => h.with({ ...h.only('final', h.jobWith('succeeded')), state: 'failed' }),
  },
  {
    name: 'a job that was accepted as succeeded is a dead letter',
    check: 'C6',
    faults: false,
    break: (h) => h.changeFinal(h.jobWith('succeeded'), 'failed'),
  },
  {
    name: 'a job that was accepted as dead counts as succeeded',
    check: 'C6',
    faults: false,
    break: (h) => h.changeFinal(h.jobWith('dead'), 'succeeded'),
  },
  {
    name: 'a job runs after its end was accepted',
    check: 'C6',
    faults: false,
    break: (h) => {
      const start = h.only('start', h.jobWith('succeeded'))
      return h.with(...h.run(start.job, { at: LATE, fence: higherFence(start) }))
    },
  },
  {
    name: 'a dead letter succeeded in its last run, where outcomes are not seen',
    check: 'C6',
    faults: false,
    break: (h) => {
      const job = h.jobWith('succeeded')
      return new History(h.without(h.only('outcome', job))).changeFinal(job, 'failed')
    },
  },
  // C7: rate
  {
    name: 'one arrival too many falls into a full window',
    check: 'C7',
    faults: false,
    break: (h) => {
      const effects = h.of('effect')
      const full = effects.findIndex(
        ({ at }, i) => (effects[i + LIMIT.permits - 1]?.at ?? Number.POSITIVE_INFINITY) - at < LIMIT.windowMs - 1,
      )
      const next = must(effects[full + LIMIT.permits], 'next arrival')
      return h.change((event) => event === next, { at: (effects[full] as HistoryEvent).at + LIMIT.windowMs - 0.5 })
    },
  },
  {
    name: 'everything arrives at once',
    check: 'C7',
    faults: false,
    break: (h) => h.change((event) => event.kind === 'effect', { at: LATE, until: LATE }),
  },
  {
    name: "one tenant's own limit is broken while the queue's holds",
    check: 'C7',
    faults: false,
    options: { limits: [LIMIT, { permits: 1, windowMs: 150, tenant: 'b' }] },
    break: (h) => h.change((event) => event.kind === 'effect', { tenant: 'b' }),
  },
  {
    name: 'something arrives while the limit is closed',
    check: 'C7',
    faults: false,
    options: { closed: [{ from: LATE, to: LATE + 1_000 }] },
    break: (h) => h.change((event) => event === h.of('effect').at(-1), { at: LATE + 999, until: LATE + 999 }),
  },
  // C8: concurrency
  {
    name: 'one call too many is in flight',
    check: 'C8',
    faults: false,
    break: (h) => {
      const effects = h.of('effect')
      return h.change((event) => effects.slice(0, 4).includes(event as Of<'effect'>), { until: 5_000 })
    },
  },
  {
    name: "one tenant has more calls in flight than its limit while the queue's holds",
    check: 'C8',
    faults: false,
    options: { concurrency: [{ max: 1, tenant: 'b' }] },
    break: (h) => {
      const effects = h.of('effect').slice(0, 2)
      return h.change((event) => effects.includes(event as Of<'effect'>), { tenant: 'b', until: 5_000 })
    },
  },
  // C11, C12: never early, order
  {
    name: 'a delayed job starts early',
    check: 'C11',
    faults: false,
    break: (h) => {
      const invoke = h.of('submit').find((event) => event.phase === 'invoke' && event.jobs[0]?.delayMs === 400)
      const job = invoke?.phase === 'invoke' ? invoke.jobs[0]?.job : undefined
      return h.change((event) => event === h.only('start', must(job, 'delayed job')), { at: (invoke?.at ?? 0) + 390 })
    },
  },
  {
    name: 'the next job of an ordered lane does not wait for the one before',
    check: 'C12',
    faults: false,
    break: (h) => {
      const [first, second] = h.laneMates('ordered')
      return h.change((event) => event === h.only('start', second), { at: h.only('start', first).at + 1 })
    },
  },
  {
    name: 'the jobs of a lane are claimed in another order than submitted',
    check: 'C12',
    faults: false,
    break: (h) => {
      const [first, second] = h.laneMates('plain').map((job) => h.only('start', job)) as [Of<'start'>, Of<'start'>]
      return h.change(
        (event) => isUnder(first)(event) || isUnder(second)(event),
        (event) => ({ fence: isUnder(first)(event) ? second.fence : first.fence }),
      )
    },
  },
  {
    name: 'the jobs of one claim start in another order than they stand in their lane',
    check: 'C12',
    faults: false,
    break: (h) => {
      const [first, second] = h.laneMates('plain').map((job) => h.only('start', job)) as [Of<'start'>, Of<'start'>]
      return h.change(isUnder(second), (event) => ({
        fence: first.fence,
        ...(event === second && { at: first.at - 1 }),
      }))
    },
  },
  // C13: counts
  {
    name: 'the queue counts one success too many',
    check: 'C13',
    faults: true,
    break: (h) => h.changeCounts(({ succeeded = 0 }) => ({ succeeded: succeeded + 1 })),
  },
  {
    name: 'the queue has forgotten a dead letter',
    check: 'C13',
    faults: true,
    break: (h) => h.changeCounts(({ failed = 0 }) => ({ failed: failed - 1 })),
  },
  ...(['waiting', 'delayed', 'running'] as const).map(
    (state): Mutant => ({
      name: `the queue counts a job as ${state} that is not there`,
      check: 'C13',
      faults: true,
      break: (h) => h.changeCounts(() => ({ [state]: 1 })),
    }),
  ),
  // C14: liveness
  {
    name: 'a job ends long after the last fault',
    check: 'C14',
    faults: true,
    break: (h) => {
      const job = h.jobWith('succeeded')
      return h.change(
        (event) => ['start', 'end', 'outcome'].includes(event.kind) && 'job' in event && event.job === job,
        (event) => ({ at: event.at + LATE }),
      )
    },
  },
  {
    name: 'a delayed job never starts',
    check: 'C14',
    faults: false,
    break: (h) => {
      const invoke = h.of('submit').find((event) => event.phase === 'invoke' && event.jobs[0]?.delayMs === 400)
      const job = invoke?.phase === 'invoke' ? invoke.jobs[0]?.job : undefined
      return h.events.filter((event) => !('job' in event && event.job === job && event.kind !== 'final'))
    },
  },
]

/** Changes that leave a history correct: what was not heard, not what was not done. */
export const HARMLESS: readonly { name: string; change: (history: History) => HistoryEvent[] }[] = [
  {
    name: 'the answer to a submit was not heard',
    change: (h) => {
      const call = h.callOf(h.jobWith('succeeded'))
      return h.change((event) => event.kind === 'submit' && event.phase === 'ok' && event.call === call, {
        phase: 'unknown',
      })
    },
  },
  {
    name: 'a producer died before it heard the answer',
    change: (h) => {
      const call = h.callOf(h.jobWith('succeeded'))
      return h.events.filter((event) => !(event.kind === 'submit' && event.phase === 'ok' && event.call === call))
    },
  },
  {
    name: 'outcomes were not seen',
    change: (h) => h.events.filter(({ kind }) => kind !== 'outcome'),
  },
  {
    name: 'leases were not seen',
    change: (h) => h.events.filter(({ kind }) => kind !== 'claim' && kind !== 'renew'),
  },
  {
    name: 'the files were read in another order',
    change: (h) => [...h.events].reverse(),
  },
]
