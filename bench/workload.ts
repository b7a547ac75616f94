/** Jobs that go to the store in one request, for every side. */
export const CHUNK_JOBS = 1_000
const PAYLOAD_BYTES = 60

/** A payload names its job by a number, so that effects can be told apart. */
export interface CallPayload {
  n: number
  to: string
}

export interface BenchJob {
  tenant: string
  payload: CallPayload
  /** Given by the caller; none unless the measure is about it. */
  id?: string
}

const NUMBER_BASE = 100_000_000
const FILLING = 'x'.repeat(PAYLOAD_BYTES - JSON.stringify({ n: NUMBER_BASE, to: '' }).length)

/** Exactly PAYLOAD_BYTES of JSON, whatever the number. */
function payload(number: number): CallPayload {
  return { n: NUMBER_BASE + number, to: FILLING }
}

export function jobNumber(payload: CallPayload): number {
  return payload.n - NUMBER_BASE
}

/** Jobs 0 … count − 1, tenants taking turns job by job. */
export function* interleavedJobs(count: number, tenants: number): Generator<BenchJob> {
  for (let number = 0; number < count; number++) {
    yield { tenant: `tenant-${number % tenants}`, payload: payload(number) }
  }
}

/** All jobs of one tenant, then all of the next, numbered from `from`. */
export function* tenantAfterTenant(name: string, tenants: number, perTenant: number, from = 0): Generator<BenchJob> {
  for (let tenant = 0; tenant < tenants; tenant++) {
    yield* tenantJobs(`${name}-${tenant}`, perTenant, from + tenant * perTenant)
  }
}

/** Jobs of one tenant, numbered from `from`. */
export function* tenantJobs(tenant: string, count: number, from = 0): Generator<BenchJob> {
  for (let number = from; number < from + count; number++) yield { tenant, payload: payload(number) }
}

/** The chunks in which a peer is fed, none longer than CHUNK_JOBS. */
export function* chunked<T>(items: Iterable<T>): Generator<T[]> {
  let chunk: T[] = []
  for (const item of items) {
    chunk.push(item)
    if (chunk.length === CHUNK_JOBS) {
      yield chunk
      chunk = []
    }
  }
  if (chunk.length > 0) yield chunk
}

/**
 * What handlers did, and when. A job that has no effect, or two, ends the benchmark: such a figure is worth nothing.
 * Times are of `performance.now()`.
 */
export class Effects {
  /** Resolves when there have been as many effects as jobs. */
  readonly done: Promise<void>
  readonly #times: Uint8Array
  readonly #at: Float64Array
  #count = 0
  #resolve: () => void = () => {}

  constructor(expected: number) {
    this.#times = new Uint8Array(expected)
    this.#at = new Float64Array(expected)
    this.done = new Promise((resolve) => {
      this.#resolve = resolve
    })
  }

  record(payload: CallPayload): void {
    const number = jobNumber(payload)
    const before = this.#times[number]
    if (before === undefined) throw new Error(`an effect of job ${number}, which was never submitted`)
    this.#times[number] = before + 1
    this.#at[number] = performance.now()
    this.#count++
    if (this.#count === this.#times.length) this.#resolve()
  }

  get count(): number {
    return this.#count
  }

  /** The instant of a job's effect, or 0 while it has had none. */
  at(number: number): number {
    return this.#at[number] ?? 0
  }

  /** Instants of all effects so far, in their order. */
  instants(): Float64Array {
    return this.#at.filter((at) => at > 0).sort()
  }

  /** Jobs a second between the first and the last effect: the start of a worker is not part of it. */
  get perSecond(): number {
    const instants = this.instants()
    return ((instants.length - 1) / ((instants.at(-1) ?? 0) - (instants[0] ?? 0))) * 1_000
  }

  /** Call it when the worker has stopped. */
  assertOncePerJob(side: string): void {
    const wrong = this.#times.findIndex((times) => times !== 1)
    if (wrong === -1) return
    throw new Error(
      `${side}: ${this.#count} effects of ${this.#times.length} jobs; job ${wrong} had ${this.#times[wrong]}`,
    )
  }

  /** For a run that is stopped with work left: what was run was run once. */
  assertNeverTwice(side: string): void {
    const wrong = this.#times.findIndex((times) => times > 1)
    if (wrong !== -1) throw new Error(`${side}: job ${wrong} had ${this.#times[wrong]} effects`)
  }
}

/** A whole number from `from` to `to`, the same sequence for every side that starts with the same seed. */
export function seededDurations(seed: number, { from, to }: { from: number; to: number }): () => number {
  let state = seed >>> 0
  return () => {
    // A linear congruential generator: enough to spread durations, and alike on every machine.
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return from + (state % (to - from + 1))
  }
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
