import type { HandlerResult, HistoryEvent, SubmittedJob } from '../history.ts'

type Kind<K extends HistoryEvent['kind']> = Extract<HistoryEvent, { kind: K }>
export type Outcome = Kind<'outcome'>
export type Effect = Kind<'effect'>
export type Submission = {
  invoke: Kind<'submit'>
  spec: SubmittedJob
  /** Its place among all submissions, in the order of invocation. */
  place: number
  answer: Kind<'submit'> | undefined
}

/** One run of a job by one worker, known by its fence. */
export interface Delivery {
  fence: bigint
  start: Kind<'start'>
  end: Kind<'end'> | undefined
  claim: Kind<'claim'> | undefined
  renews: Kind<'renew'>[]
  outcomes: Outcome[]
}

/** All that a history says about one job. Deliveries are in the order of their fences. */
export interface JobLife {
  job: string
  submissions: Submission[]
  deliveries: Delivery[]
  outcomes: Outcome[]
  effects: Effect[]
  finals: Kind<'final'>[]
  events: HistoryEvent[]
}

export interface Fault {
  fault: string
  from: number
  /** Infinity for one that was never ended, as the kill of a worker. */
  to: number
  worker: string | undefined
  begin: HistoryEvent
}

export interface Lives {
  jobs: Map<string, JobLife>
  faults: Fault[]
  effects: Effect[]
  counts: Kind<'counts'> | undefined
}

/** Orders a history by jobs and faults. `events` are sorted by time. */
export function readLives(events: readonly HistoryEvent[]): Lives {
  const jobs = new Map<string, JobLife>()
  const faults: Fault[] = []
  const effects: Effect[] = []
  const answers = new Map<string, Kind<'submit'>>()
  let counts: Kind<'counts'> | undefined
  let place = 0
  for (const event of events) {
    switch (event.kind) {
      case 'submit':
        if (event.phase !== 'invoke') {
          answers.set(`${event.process} ${event.call}`, event)
          break
        }
        for (const spec of event.jobs) {
          const life = lifeOf(jobs, spec.job)
          life.submissions.push({ invoke: event, spec, place: place++, answer: undefined })
          life.events.push(event)
        }
        break
      case 'nemesis':
        readFault(faults, event)
        break
      case 'counts':
        counts = event
        break
      default:
        lifeOf(jobs, event.job).events.push(event)
        if (event.kind === 'effect') effects.push(event)
    }
  }
  for (const life of jobs.values()) {
    complete(life)
    for (const submission of life.submissions) {
      submission.answer = answers.get(`${submission.invoke.process} ${submission.invoke.call}`)
    }
  }
  return { jobs, faults, effects, counts }
}

export function isAcknowledged(life: JobLife): boolean {
  return life.submissions.some(({ answer }) => answer?.phase === 'ok')
}

/** Results after which a job is not run again. */
export function isTerminal(result: HandlerResult): boolean {
  return result === 'succeeded' || result === 'dead'
}

/** The faults that can have cost a process its leases at some time between two instants. */
export function faultsBetween(
  lives: Lives,
  process: string,
  span: { from: number; to: number; aftermathMs: number },
): Fault[] {
  return lives.faults.filter(
    (fault) =>
      (fault.worker === undefined || fault.worker === process) &&
      fault.from <= span.to &&
      fault.to + span.aftermathMs >= span.from,
  )
}

function lifeOf(jobs: Map<string, JobLife>, job: string): JobLife {
  let life = jobs.get(job)
  if (life === undefined) {
    life = { job, submissions: [], deliveries: [], outcomes: [], effects: [], finals: [], events: [] }
    jobs.set(job, life)
  }
  return life
}

function complete(life: JobLife): void {
  for (const event of life.events) {
    if (event.kind === 'outcome') life.outcomes.push(event)
    else if (event.kind === 'effect') life.effects.push(event)
    else if (event.kind === 'final') life.finals.push(event)
    else if (event.kind === 'start') life.deliveries.push(deliver(life, event))
  }
  life.deliveries.sort((a, b) => Number(a.fence - b.fence) || a.start.at - b.start.at)
}

function deliver(life: JobLife, start: Kind<'start'>): Delivery {
  const own = life.events.filter((event) => 'fence' in event && event.fence === start.fence)
  const isOf = <K extends HistoryEvent['kind']>(kind: K) =>
    own.filter((event): event is Kind<K> => event.kind === kind && event.process === start.process)
  return {
    fence: BigInt(start.fence),
    start,
    end: isOf('end')[0],
    claim: isOf('claim')[0],
    renews: isOf('renew'),
    outcomes: isOf('outcome'),
  }
}

function readFault(faults: Fault[], event: Kind<'nemesis'>): void {
  if (event.phase === 'begin') {
    const to = Number.POSITIVE_INFINITY
    faults.push({ fault: event.fault, from: event.at, to, worker: event.worker, begin: event })
    return
  }
  const open = faults.find(
    (fault) => fault.fault === event.fault && fault.worker === event.worker && fault.to === Number.POSITIVE_INFINITY,
  )
  if (open !== undefined) open.to = event.at
}
