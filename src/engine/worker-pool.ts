import { type Clock, isTestClock } from '../clock.ts'
import { ClosedError, LeaseLostError } from '../errors.ts'
import type { Redis } from '../store/redis.ts'
import type { Requests } from '../store/requests.ts'
import type {
  ClaimReply,
  ClaimRequest,
  DueWork,
  Finish,
  FinishedInAction,
  FinishedJob,
  Lesson,
} from '../store/scripts/finish-and-claim.ts'
import type { Rest } from '../store/scripts/stay-idle.ts'
import { Exchanges, type Told } from './exchanges.ts'
import { finishedJob, finishOf, toldOf } from './finish.ts'
import { decodeJobs, type LeasedJob } from './job.ts'
import { JobRun, type RunSetting } from './job-run.ts'
import { LAST_WORDS_MS, settledWithin } from './last-words.ts'
import { LeaseKeeper } from './lease-keeper.ts'
import type { Log } from './log.ts'
import type { RunResult } from './outcome.ts'
import { type Hands, type Processor, Processors } from './processors.ts'
import type { QueueFigures } from './queue-figures.ts'
import { givenLimitNames, type QueueSettings } from './queue-options.ts'
import type { Recovery } from './recovery.ts'
import type { RunEnds } from './run-ends.ts'
import { Runs } from './runs.ts'
import { buryUnreadable } from './unreadable-job.ts'
import type { RestingSleeper, Sleeper, Waker } from './waker.ts'

// Registered as idle for this long; each claim registers again, and so does every heartbeat of the waker, which comes to
// each queue of the process whatever the others do.
const IDLE_FOR_MS = 30_000
// By a clock that a test moves a process does not die, and its next heartbeat would come long after the move.
const IDLE_FOR_EVER_MS = 100 * 365 * 86_400_000
// What ends within this share of a usual run is told together, at most this much later: a hand idles a little, Redis is
// asked far less often. (50 hands of 20–180 ms: half the Redis CPU a job for 7 % of the rate.)
const GATHER_SHARE = 0.15
const LONGEST_GATHER_MS = 15
// Whoever does not hold the alarm looks after it, but not more often than this. Its last heartbeat may be 12 s after the
// holder was killed: jobs run again within 16.
const BACKUP_MS = { least: 3_000, after: 300, spread: 400 }
const RETRY_EXCHANGE_MS = 1_000
// What a handler reads when its time is over.
const TAKEN_BACK =
  'This process is shutting down, and the grace of its jobs is over (shutdownGraceMs): the job goes back, and runs again in another process or after the restart.'
// A claim for more is split by Redis anyway (64 tenants, 1 MB).
const MOST_WANTED = 1_000
/**
 * The hands of one process for one queue. Claims as many jobs as it has free hands, runs them, and tells what became of
 * them together with the next claim.
 *
 * open → closing (no new claims, running jobs get their grace) → closed
 */
export class WorkerPool implements Sleeper {
  readonly #queue: string
  readonly #settings: QueueSettings
  readonly #requests: Requests
  readonly #waker: Waker
  readonly #clock: Clock
  /** A test moves the clock: time does not pass by itself. */
  readonly #isTimeMoved: boolean
  readonly #log: Log
  readonly #leases: LeaseKeeper
  readonly #recovery: Recovery
  readonly #stopListening: () => void
  readonly #onDue: (due: DueWork) => void
  readonly #recordCongestion: () => void
  readonly #figures: QueueFigures
  readonly #ends: RunEnds
  readonly #processors: Processors
  /** Two of them can be of one job: one that lost its lease, and the next. */
  readonly #runs: Runs
  #state: 'open' | 'closing' | 'closed' = 'open'
  #isStarted = false
  readonly #exchanges: Exchanges
  #isExchanging = false
  #underWay: Promise<void> | undefined
  #suspects = 0
  #meanRunMs = 0
  #isPoked = false
  #flushHandle: (() => void) | undefined
  #cancelAlarm: (() => void) | undefined
  #cancelRecovery: (() => void) | undefined
  #onQuiet: (() => void) | undefined

  constructor(options: {
    queue: string
    settings: QueueSettings
    redis: Redis
    requests: Requests
    waker: Waker
    clock: Clock
    log: Log
    /** Something is due besides jobs. */
    onDue: (due: DueWork) => void
    recordCongestion: () => void
    figures: QueueFigures
    ends: RunEnds
    recovery: Recovery
  }) {
    this.#queue = options.queue
    this.#onDue = options.onDue
    this.#recordCongestion = options.recordCongestion
    this.#figures = options.figures
    this.#ends = options.ends
    this.#settings = options.settings
    this.#requests = options.requests
    this.#waker = options.waker
    this.#clock = options.clock
    this.#isTimeMoved = isTestClock(options.clock)
    this.#log = options.log
    this.#runs = new Runs(options.clock)
    const { unknownTypeMs, limits } = options.settings
    const limitNames = givenLimitNames(limits)
    this.#processors = new Processors({ queue: options.queue, unknownTypeMs, limitNames, log: options.log })
    this.#exchanges = new Exchanges({
      ...options,
      asking: (wanted, told) => this.#asking(wanted, told),
      onTold: (finished) => {
        for (const { fence } of finished) this.#leases.drop(fence)
      },
    })
    this.#recovery = options.recovery
    this.#leases = new LeaseKeeper({
      redis: options.redis,
      requests: options.requests,
      leaseMs: options.settings.leaseMs,
      clock: options.clock,
      log: options.log,
      queue: options.queue,
      recovery: options.recovery,
      onLost: (fence) => this.#abortClaim(fence),
    })
    // Leases may have run out while the store was away, and somebody may be about to take them back.
    const renew = () => void this.#leases.renew()
    this.#stopListening = options.redis.onReconnect(renew)
    options.recovery.onOutage(renew)
  }

  get wakeKey(): string {
    return this.#requests.keys.wake
  }

  /** Starts on the next turn of the event loop, so that all processors registered together are known by then. */
  add(type: string, processor: Processor, hands: Hands): void {
    this.#processors.add(type, processor, hands)
    if (this.#isStarted) return
    this.#isStarted = true
    setImmediate(() => this.#poke())
  }

  onWake(what: string | undefined): void {
    if (what?.startsWith('cancel:')) {
      this.#cancel(what.slice('cancel:'.length))
      return
    }
    if (what?.startsWith('cancel-action:')) {
      this.#cancelAction(what.slice('cancel-action:'.length))
      return
    }
    this.#poke()
  }

  onLate(ms: number): void {
    this.#recovery.waited(ms)
  }

  rest(): RestingSleeper | undefined {
    if (this.#state !== 'open' || this.#isExchanging || this.#exchanges.hasToTell || this.#freeHands() <= 0) {
      return undefined
    }
    // A claim that overtook it would be undone: the store would wake one whose hands are full.
    this.#isExchanging = true
    let end = () => {}
    this.#underWay = new Promise((resolve) => {
      end = resolve
    })
    return {
      queueKey: this.#requests.keys.queue,
      client: this.#requests.client,
      levels: this.#processors.levels,
      idleForMs: this.#idleForMs,
      onRest: (rest) => {
        this.#onRest(rest)
        end()
      },
    }
  }

  #onRest(rest: Rest): void {
    this.#isExchanging = false
    const isMore = this.#isPoked || rest.word === 'claim' || rest.waitMs === 0
    this.#isPoked = false
    if (isMore) this.#poke()
    else this.#sleepUntil(rest)
    if (this.#exchanges.hasToTell) this.#flushSoon()
    if (this.#isQuiet()) this.#onQuiet?.()
  }

  #cancel(jobKey: string): void {
    for (const run of this.#runs) {
      if (run.job.key === jobKey) run.abort(new Error('the job was cancelled'))
    }
  }

  /** @param lane - `<lane>:<tenant>` */
  #cancelAction(lane: string): void {
    for (const run of this.#runs) {
      if (`${run.job.actionLane}:${run.job.tenantToken}` === lane) run.abort(new Error('the action has ended'))
    }
  }

  async close(): Promise<void> {
    if (this.#state !== 'open') return
    this.#state = 'closing'
    this.#cancelAlarm?.()
    this.#cancelRecovery?.()
    this.#waker.remove(this)
    if (!this.#isStarted) {
      this.#stopListening()
      return
    }
    await this.#quietWithin(this.#settings.shutdownGraceMs)
    for (const run of this.#runs.takeAll()) {
      run.abort(new ClosedError(`The queue "${this.#queue}"`, TAKEN_BACK))
      run.forsake()
      this.#tell(run.job, { outcome: 'released' })
    }
    // A claim under way may bring jobs: they are given back with the last exchange.
    const deadline = performance.now() + LAST_WORDS_MS
    await this.#exchangesEnd(deadline)
    this.#cancelTimers()
    if (this.#isExchanging) this.#exchanges.giveUp()
    else await this.#exchanges.last(deadline)
    this.#stopListening()
    this.#leases.close()
    this.#state = 'closed'
  }

  /** Resolves when nothing runs and all that has ended is told, or the time is over. A claim under way is not waited for. */
  #quietWithin(ms: number): Promise<void> {
    if (this.#isQuiet()) return Promise.resolve()
    return new Promise((resolve) => {
      const cancel = this.#clock.setTimer(resolve, ms)
      this.#onQuiet = () => {
        cancel()
        resolve()
      }
    })
  }

  /** Resolves when no call is under way, or the store does not answer. One may be followed by the next. */
  async #exchangesEnd(deadline: number): Promise<void> {
    while (this.#isExchanging && performance.now() < deadline) {
      await settledWithin(this.#underWay, deadline - performance.now())
      await new Promise(setImmediate)
    }
  }

  #isQuiet(): boolean {
    return this.#runs.size === 0 && this.#exchanges.isAllTold
  }

  /** An exchange does now what they are for. */
  #cancelTimers(): void {
    this.#flushHandle?.()
    this.#flushHandle = undefined
    this.#cancelAlarm?.()
    this.#cancelAlarm = undefined
  }

  /** There may be something to claim. */
  #poke(): void {
    if (this.#state !== 'open') return
    if (this.#isExchanging || this.#freeHands() <= 0) this.#isPoked = true
    else this.#exchange()
  }

  #freeHands(): number {
    if (this.#state !== 'open') return 0
    return Math.min(MOST_WANTED, this.#processors.concurrency - this.#runs.size)
  }

  #asking(wanted: number, { finished, untold }: Told): ClaimRequest {
    return {
      wanted,
      finished,
      untold,
      levels: this.#processors.levels,
      leaseMs: this.#settings.leaseMs,
      idleForMs: this.#idleForMs,
      hasSuspect: this.#suspects > 0,
      takesBackUntilUs: this.#recovery.untilUs,
    }
  }

  get #idleForMs(): number {
    return this.#isTimeMoved ? IDLE_FOR_EVER_MS : IDLE_FOR_MS
  }

  /**
   * The only way to one: while another is under way it does nothing, for that one’s end sees to the next. Whatever goes wrong
   * with one exchange, the process lives and the next one comes.
   */
  #exchange(): void {
    if (this.#isExchanging) return
    this.#cancelTimers()
    this.#underWay = this.#exchangeOnce()
      .catch((error: unknown) => {
        this.#isExchanging = false
        this.#onFailedExchange(error)
      })
      .finally(() => {
        if (this.#isQuiet()) this.#onQuiet?.()
      })
  }

  /**
   * One round trip: what finished, and the next claim. One is under way at a time: what ends meanwhile goes with the next,
   * so that calls are few and large. (Two of half the size let Redis and this process work at once, but cost a third more
   * Redis CPU and a fifth of the rate; measured with no-op jobs.)
   */
  async #exchangeOnce(): Promise<void> {
    const wanted = Math.max(0, this.#freeHands())
    const sentAt = this.#clock.now()
    this.#isExchanging = true
    const reply = await this.#recovery
      .watch(() => this.#exchanges.next(wanted))
      .catch((error: unknown) => this.#onFailedExchange(error))
    this.#isExchanging = false
    if (reply) this.#onReply(reply, wanted, sentAt)
  }

  #onFailedExchange(error: unknown): void {
    if (this.#state === 'closed') return
    this.#log({
      level: 'error',
      event: 'worker.exchange-failed',
      message: `Queue "${this.#queue}" could not be served: ${error instanceof Error ? error.message : String(error)}`,
      error,
    })
    this.#cancelAlarm?.()
    this.#cancelAlarm = this.#clock.setTimer(() => this.#exchange(), RETRY_EXCHANGE_MS)
  }

  #onReply(reply: ClaimReply, wanted: number, sentAt: number): void {
    // Not before the first one: it is then that a queue is registered, and known where it lives. Whatever was sent to this
    // process since it stood in line is in its list.
    if (this.#state === 'open') this.#waker.add(this)
    const jobs = decodeJobs(reply.fence, reply.jobs, reply.kept)
    this.#onDue(reply)
    if (reply.isToRecord) this.#recordCongestion()
    if (wanted > 0) this.#figures.claims.observe(jobs.length)
    if (jobs.length > 0) {
      this.#leases.hold(reply.fence, jobs.length)
      this.#startAll(jobs, reply, sentAt)
    }
    const takesBack = this.#mayTakeBack(reply.leftAtUs)
    const isMore = this.#isPoked || reply.word === 'again' || reply.waitMs === 0
    this.#isPoked = false
    if (takesBack) this.#exchange()
    if (isMore) this.#poke()
    else if (jobs.length < wanted) this.#sleepUntil(reply)
    else if (this.#hasIdleHands()) this.#exchange()
    if (this.#exchanges.hasToTell) this.#flushSoon()
  }

  /**
   * Whether leases have run out that may be taken back. If so the next call does so, also for others where all hands are full; else one
   * does that comes by itself later.
   */
  #mayTakeBack(leftAtUs: number | undefined): boolean {
    const waitMs = this.#recovery.left(leftAtUs)
    if (waitMs === undefined || this.#state !== 'open') return false
    if (waitMs === 0) return true
    this.#cancelRecovery ??= this.#clock.setTimer(() => {
      this.#cancelRecovery = undefined
      this.#exchange()
    }, waitMs)
    return false
  }

  /**
   * Hands are free and nothing is under way that would claim for them. A call that got all it wanted has taken this process
   * off the list of those to wake, so somebody must ask.
   */
  #hasIdleHands(): boolean {
    return !this.#isExchanging && !this.#exchanges.hasToTell && this.#freeHands() > 0
  }

  /** One process of all holds the alarm for the next instant; the others only look after it. */
  #sleepUntil({ waitMs, holdsAlarm }: Pick<ClaimReply, 'waitMs' | 'holdsAlarm'>): void {
    this.#cancelAlarm?.()
    this.#cancelAlarm = undefined
    if (waitMs === undefined || this.#state !== 'open') return
    const backup = Math.max(waitMs, BACKUP_MS.least) + BACKUP_MS.after + Math.random() * BACKUP_MS.spread
    this.#cancelAlarm = this.#clock.setTimer(() => this.#poke(), holdsAlarm ? waitMs : backup)
  }

  #startAll(jobs: readonly LeasedJob[], { freshMs }: ClaimReply, sentAt: number): void {
    const leasedUntil = sentAt + this.#settings.leaseMs
    const epochMs = this.#clock.date() - this.#clock.now()
    const setting: RunSetting = {
      clock: this.#clock,
      requests: this.#requests,
      freshUntil: freshMs === undefined ? undefined : sentAt + freshMs,
      onEnd: this.#onEnd,
    }
    for (const job of jobs) {
      // For each anew: the handlers before it may have taken their time.
      const now = this.#clock.now()
      const processor = this.#processors.of(job.type)
      if (this.#state !== 'open') this.#tell(job, { outcome: 'released' })
      else if (setting.freshUntil !== undefined && now > setting.freshUntil) this.#tell(job, { outcome: 'returned' })
      // This process stood still, or the reply took that long: the job may run elsewhere by now. The store knows.
      else if (now >= leasedUntil) this.#tell(job, { outcome: 'released' })
      else if (job.damage !== undefined) this.#tell(job, buryUnreadable(job, this.#queue, this.#log))
      else if (processor === undefined) this.#tell(job, this.#processors.endOfUnknown(job))
      else {
        this.#figures.started(job, epochMs + now)
        this.#start(job, processor, setting, now)
      }
    }
  }

  #start(job: LeasedJob, processor: Processor, setting: RunSetting, now: number): void {
    const timeoutMs = job.record.options.timeoutMs ?? processor.timeoutMs
    const { isTimeoutGiven = false } = processor
    const run = new JobRun(job, setting, { startedAt: now, timeoutMs, isTimeoutGiven })
    this.#runs.add(run)
    if (job.isSuspect) this.#suspects += 1
    run.start(processor.handler)
  }

  /** One function for all runs: one for each would be as much work as starting it. */
  readonly #onEnd = (run: JobRun, result: RunResult): void => {
    const { job } = run
    this.#runs.delete(run)
    if (job.isSuspect) this.#suspects -= 1
    const durationMs = this.#clock.now() - run.startedAt
    this.#meanRunMs += (durationMs - this.#meanRunMs) / 16
    const { maxRetries, upstream } = this.#processors.of(job.type) as Processor
    const { maxThrottles } = this.#settings
    const finish = finishOf(job, result, { maxRetries, maxThrottles })
    this.#figures.ended(job.type, finish, durationMs)
    const lesson = run.lessons?.lessonFor(upstream)
    const told = job.actionLane === '' ? undefined : this.#toldOf(job, result, finish, durationMs)
    this.#ends.note(this.#tell(job, finish, told, lesson), job, result)
  }

  #toldOf(job: LeasedJob, result: RunResult, finish: Finish, durationMs: number): FinishedInAction | undefined {
    const { maxResultBytes } = this.#settings
    return toldOf(job, result, finish, { durationMs, endedAt: this.#clock.date(), maxResultBytes })
  }

  #tell(job: LeasedJob, finish: Finish, action?: FinishedInAction, lesson?: Lesson): FinishedJob {
    const finished = finishedJob(job, finish, action, lesson)
    this.#exchanges.add(finished)
    this.#flushSoon()
    return finished
  }

  readonly #flush = (): void => {
    this.#flushHandle = undefined
    if (this.#exchanges.hasToTell) this.#exchange()
  }

  /** All hands at once (or a call full of them), or whatever has ended a little later. */
  #flushSoon(): void {
    if (this.#exchanges.isFull(this.#processors.concurrency)) {
      this.#exchange()
      return
    }
    if (this.#flushHandle) return
    // A test that waits for the end of a job would have to move the clock first.
    const gatherMs = this.#isTimeMoved ? 0 : Math.min(LONGEST_GATHER_MS, this.#meanRunMs * GATHER_SHARE)
    if (gatherMs >= 1) {
      this.#flushHandle = this.#clock.setTimer(this.#flush, gatherMs)
    } else {
      const immediate = setImmediate(this.#flush)
      this.#flushHandle = () => clearImmediate(immediate)
    }
  }

  #abortClaim(fence: string): void {
    for (const run of this.#runs) {
      if (run.job.fence === fence) run.abort(new LeaseLostError({ jobId: run.job.id, fence }))
    }
  }
}
