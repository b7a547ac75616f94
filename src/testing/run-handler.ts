import { type Clock, systemClock } from '../clock.ts'
import type { GrantedBy, Job } from '../engine/job.ts'
import type { Handler, JobContext } from '../engine/job-run.ts'
import { type Answer, Lessons } from '../engine/lesson.ts'
import { type RunResult, resultOfReturn, resultOfThrow } from '../engine/outcome.ts'

/** What a test gives a handler besides its job. */
export interface RunHandlerOptions {
  /** Abort it to see what the handler does when it is cancelled, has lost its lease or must stop. */
  signal?: AbortSignal
  /** @default '1' */
  fence?: string
  /** Which member of a pool granted the job. */
  grant?: GrantedBy
  /** In place of the limits: what is awaited when the handler awaits `ctx.admit()`. */
  admit?: () => void | Promise<void>
  /** By which `ctx.learn` understands what an upstream says of instants. */
  clock?: Pick<Clock, 'date'>
}

/** What a handler made of one job. */
export interface HandlerRun {
  /** `failed`: it threw, and a worker would try again; `discarded`: never again. */
  readonly outcome: 'succeeded' | 'failed' | 'throttled' | 'discarded'
  /** What it returned. */
  readonly result: unknown
  /** What it threw, or the reason it was discarded for. */
  readonly error: unknown
  /** Of a throttled one, if the upstream said so. */
  readonly retryAfterMs: number | undefined
  /** How often it asked the limits. */
  readonly admitted: number
  /** What it gave to `ctx.learn`. */
  readonly answers: readonly Answer[]
}

/**
 * Runs a handler once, by itself: no Redis, no worker. It gets a job with whatever the test says and plain values for the rest,
 * and a context whose limits always allow. Never rejects: what the handler throws is in the answer.
 */
export async function runHandler<Payload>(
  handler: Handler<Payload>,
  job: Partial<Job<Payload>> & { readonly payload: Payload },
  options: RunHandlerOptions = {},
): Promise<HandlerRun> {
  const context = new RecordedContext(options)
  const result = await resultOf(async () => handler(completed(job, options), context))
  return {
    outcome: result.kind,
    result: 'value' in result ? result.value : undefined,
    error: 'error' in result ? result.error : undefined,
    retryAfterMs: 'retryAfterMs' in result ? result.retryAfterMs : undefined,
    admitted: context.admitted,
    answers: context.answers,
  }
}

function completed<Payload>(job: Partial<Job<Payload>> & { readonly payload: Payload }, options: RunHandlerOptions) {
  return {
    id: 'job-1',
    key: 'normal:default:1:default',
    tenant: 'default',
    type: 'TEST',
    level: 'normal',
    lane: 'default',
    action: undefined,
    attempt: 1,
    cost: 1,
    createdAt: (options.clock ?? systemClock).date(),
    ...job,
    // As it comes out of Redis: a date is text by then.
    payload: JSON.parse(JSON.stringify(job.payload ?? null)) as Payload,
  } satisfies Job<Payload>
}

async function resultOf(run: () => Promise<unknown>): Promise<RunResult> {
  try {
    return resultOfReturn(await run())
  } catch (error) {
    return resultOfThrow(error)
  }
}

class RecordedContext implements JobContext {
  readonly signal: AbortSignal
  readonly fence: string
  readonly grant: GrantedBy
  readonly answers: Answer[] = []
  admitted = 0
  readonly #lessons = new Lessons()
  readonly #options: RunHandlerOptions

  constructor(options: RunHandlerOptions) {
    this.signal = options.signal ?? new AbortController().signal
    this.fence = options.fence ?? '1'
    this.grant = options.grant ?? {}
    this.#options = options
  }

  async admit(): Promise<void> {
    this.signal.throwIfAborted()
    this.admitted += 1
    await this.#options.admit?.()
    this.signal.throwIfAborted()
  }

  learn(answer: Answer) {
    this.answers.push(answer)
    return this.#lessons.learn(answer, (this.#options.clock ?? systemClock).date())
  }
}
