import { type Clock, systemClock } from '../clock.ts'
import type { QueueKeys } from '../store/keys.ts'
import type { Redis } from '../store/redis.ts'
import { Requests } from '../store/requests.ts'
import type { DueWork } from '../store/scripts/finish-and-claim.ts'
import { recordCongestion } from '../store/scripts/record-congestion.ts'
import { Actions } from './actions/actions.ts'
import { Aggregates } from './actions/aggregates.ts'
import { Duties } from './actions/duties.ts'
import type { TellWebhook } from './actions/duty-work.ts'
import { Auditor } from './audit/auditor.ts'
import { Claimer } from './claimer.ts'
import { CongestionControl } from './congestion-control.ts'
import { CongestionRecorder } from './congestion-recorder.ts'
import { DeadLetters } from './dead-letters.ts'
import { EventFeed } from './event-feed.ts'
import type { IdlePace } from './idle-pace.ts'
import { Intake, type SubmitOptions, type SubmittedJob } from './intake.ts'
import { LimitControl } from './limit-control.ts'
import type { Log } from './log.ts'
import { QueueFigures } from './queue-figures.ts'
import { checkQueueOptions, declarationOf, type QueueOptions, type QueueSettings } from './queue-options.ts'
import { QueuePlace } from './queue-place.ts'
import { Recovery } from './recovery.ts'
import { Registration } from './registration.ts'
import { RunEnds } from './run-ends.ts'
import { insideOfSchedules, Schedules } from './schedules/schedules.ts'
import { Ticker } from './schedules/ticker.ts'
import type { JobInput } from './submission.ts'
import type { Waker } from './waker.ts'
import { WorkerPool } from './worker-pool.ts'

/** Those that are furthest behind have a history of their own. */
const RECORDED_TENANTS = 50

/** What a queue is made with. */
export interface QueueMaking {
  readonly name: string
  readonly options: QueueOptions | undefined
  readonly prefix: string
  readonly redis: Redis
  readonly waker: Waker
  readonly pace: IdlePace
  readonly clock: Clock
  readonly log: Log
  readonly client: string
  readonly tellWebhook: TellWebhook | undefined
  /** Looks at what others have declared, and declares nothing: its options only say where the queue is, unless the store does. */
  readonly isObserver?: boolean
}

/** What parts ask of the queue itself. */
interface QueueItself {
  submit(job: JobInput, options: SubmitOptions): Promise<SubmittedJob>
  isClosed(): boolean
}

/** What a queue consists of. */
export interface QueueParts {
  readonly settings: QueueSettings
  readonly clock: Clock
  readonly redis: Redis
  readonly keys: QueueKeys
  readonly figures: QueueFigures
  readonly ends: RunEnds
  readonly feed: EventFeed
  readonly registration: Registration
  readonly requests: Requests
  readonly intake: Intake
  readonly claimer: Claimer
  readonly pool: WorkerPool
  readonly limits: LimitControl
  readonly deadLetters: DeadLetters
  readonly schedules: Schedules
  readonly ticker: Ticker
  readonly congestion: CongestionControl
  readonly recorder: CongestionRecorder
  readonly actions: Actions
  readonly aggregates: Aggregates
  readonly duties: Duties
  readonly auditor: Auditor
}

/** Makes the parts of a queue, each with those it works with. Nothing runs or asks the store yet. */
export function makeQueueParts(given: QueueMaking, itself: QueueItself): QueueParts {
  const { name, prefix, redis, clock, log, client, pace } = given
  const settings = checkQueueOptions(name, given.options)
  const { maxPayloadBytes, leaseMs, shutdownGraceMs: graceMs, unknownTypeMs } = settings
  const { group } = settings.limits.shared[0] ?? { group: name }
  const [figures, ends] = [new QueueFigures(), new RunEnds()]
  const recovery = new Recovery({ clock, leaseMs })
  const place = new QueuePlace({ prefix, queue: name, group, client })
  const { keys } = place
  const feed = new EventFeed(redis, keys)
  const registration = new Registration({
    ...given,
    queue: name,
    place,
    declaration: declarationOf(given.options, settings),
    isObserver: given.isObserver ?? false,
    declare: async (hasForgotten) => {
      await aggregates.declare()
      if (hasForgotten) insideOfSchedules(schedules).declareAgain()
    },
  })
  const ready = () => registration.ready()
  const readable = () => registration.readable()
  /** Calls of each kind have their own numbers: a producer that waits must not hold the others up. */
  const requestsOf = (client: string) =>
    new Requests({
      redis,
      client,
      keys: place.keysOf(client),
      register: (isAgain) => registration.register(isAgain),
      knownSince: () => registration.knownSince,
    })
  const requests = requestsOf(client)
  const dutyRequests = requestsOf(`${client}-duties`)
  const intake = new Intake({
    queue: name,
    clock,
    requests,
    settings,
    figures,
    isClosed: () => itself.isClosed(),
    ready,
  })
  /** A claim says that there is something to do besides jobs. */
  const besides = {
    onDue: ({ hasDuties, hasTicks }: DueWork): void => {
      if (hasDuties) duties.look()
      if (hasTicks) ticker.look()
    },
    recordCongestion: () => recorder.record(),
  }
  const claimer = new Claimer({ ...given, ...besides, requests, settings, figures, ends, recovery })
  const limits = new LimitControl({ ...given, requests, place, ready })
  const deadLetters = new DeadLetters({ ...given, keys, requests, maxPayloadBytes, ready, readable })
  const schedules = new Schedules({
    requests,
    maxPayloadBytes,
    pace,
    log,
    ready,
    readable,
    submit: (job) => itself.submit(job, { whenFull: 'error' }),
  })
  const congestion = new CongestionControl({ redis, keys, requests, ready, readable })
  const recorder = new CongestionRecorder({
    queue: name,
    store: () => recordCongestion(requests, RECORDED_TENANTS),
    log,
  })
  const actions = new Actions({
    ...given,
    queue: name,
    keys,
    requests,
    maxPayloadBytes,
    ready,
    readable,
    submitter: (options) => intake.submitter(options),
    onAggregating: () => duties.look(),
    counted: (submit) => intake.counted(submit),
  })
  const aggregates = new Aggregates({ ...given, requests: dutyRequests, onDue: () => duties.lookAnew() })
  const ticker = new Ticker({ ...given, requests: dutyRequests })
  // By the real time also where a test moves it: it would be at it all the while.
  const auditor = new Auditor({ ...given, requests: dutyRequests, settings: settings.audit, clock: systemClock })
  const duties = new Duties({
    ...given,
    ...{ leaseMs, graceMs, unknownTypeMs },
    actions,
    aggregates,
    requests: dutyRequests,
  })
  const pool = new WorkerPool({
    ...given,
    ...besides,
    queue: name,
    settings,
    requests: requestsOf(`${client}-pool`),
    figures,
    ends,
    recovery,
  })
  return {
    ...{ settings, clock, redis, keys, figures, ends, feed, registration, requests, intake, claimer, pool },
    ...{ limits, deadLetters, schedules, ticker, congestion, recorder, actions, aggregates, duties, auditor },
  }
}
