import type { Happening, HistoryEvent, JobState } from '../history.ts'

/** The events of one kind. */
export type Of<K extends HistoryEvent['kind']> = Extract<HistoryEvent, { kind: K }>
type Change = Partial<Record<string, unknown>>

/** A correct history with the handles that mutations need: jobs by what became of them, and edits. */
export class EditableHistory {
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

  /** A job submitted with this delay, and when that was. */
  delayed(delayMs: number): { job: string; at: number } {
    const invoke = this.of('submit').find((event) => event.phase === 'invoke' && event.jobs[0]?.delayMs === delayMs)
    const job = invoke?.phase === 'invoke' ? invoke.jobs[0]?.job : undefined
    return { job: must(job, 'delayed job'), at: must(invoke, 'delayed job').at }
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

  swapFences(first: Of<'start'>, second: Of<'start'>): HistoryEvent[] {
    return this.change(
      (event) => isUnder(first)(event) || isUnder(second)(event),
      (event) => ({ fence: isUnder(first)(event) ? second.fence : first.fence }),
    )
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

export function higherFence(start: Of<'start'>): string {
  return String(BigInt(start.fence) + 1_000_000n)
}

export function must<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`the history has no ${what}`)
  return value
}

export function isUnder(start: Of<'start'>): (event: HistoryEvent) => boolean {
  return (event) => 'fence' in event && event.job === start.job && event.fence === start.fence
}
