/**
 * How jobs waited: quantiles within 2 %, mean and maximum exactly, in memory that does not grow with the jobs. Jobs that have
 * not started count with the time they have waited so far, so that what depends on them is the least that it can be.
 */
export class WaitTimes {
  maxMs = 0
  /** Jobs that have not started. */
  unstarted = 0
  #started = 0
  #sumMs = 0
  readonly #ofStarted: Counts = []
  readonly #ofUnstarted: Counts = []

  add(ms: number): void {
    this.#started += 1
    this.#note(ms, 1)
    count(this.#ofStarted, placeOf(ms), 1)
  }

  /** So many that have waited for so long, and still do. */
  addUnstarted(ms: number, jobs: number): void {
    this.unstarted += jobs
    this.#note(ms, jobs)
    count(this.#ofUnstarted, placeOf(ms), jobs)
  }

  addAll(others: WaitTimes): void {
    this.unstarted += others.unstarted
    this.#started += others.#started
    this.#sumMs += others.#sumMs
    this.maxMs = Math.max(this.maxMs, others.maxMs)
    // The arrays have holes where nothing was counted: they are passed over.
    others.#ofStarted.forEach((jobs, place) => {
      count(this.#ofStarted, place, jobs)
    })
    others.#ofUnstarted.forEach((jobs, place) => {
      count(this.#ofUnstarted, place, jobs)
    })
  }

  get count(): number {
    return this.#started + this.unstarted
  }

  get meanMs(): number {
    return this.count === 0 ? 0 : this.#sumMs / this.count
  }

  /** The time that this share of the jobs did not exceed. */
  quantileMs(share: number): number {
    const rank = this.#rankOf(share)
    return rank >= this.count ? this.maxMs : Math.min(this.maxMs, timeOf(this.#placeAmongAll(rank)))
  }

  /** Whether a quantile stays what it is, however much longer those wait that have not started. */
  isFinal(share: number): boolean {
    if (this.unstarted === 0) return true
    const rank = this.#rankOf(share)
    return rank <= this.#started && placeAt(rank, this.#ofStarted) === this.#placeAmongAll(rank)
  }

  #rankOf(share: number): number {
    return Math.ceil(share * this.count)
  }

  #placeAmongAll(rank: number): number {
    return placeAt(rank, this.#ofStarted, this.#ofUnstarted)
  }

  #note(ms: number, jobs: number): void {
    this.#sumMs += ms * jobs
    if (ms > this.maxMs) this.maxMs = ms
  }
}

/** How many jobs, by the logarithm of the time; the first are those that waited for less than `FINEST_MS`. */
type Counts = number[]

const FINEST_MS = 0.1
const PLACES_PER_DOUBLING = 18

function count(counts: Counts, place: number, jobs: number): void {
  counts[place] = (counts[place] ?? 0) + jobs
}

function placeOf(ms: number): number {
  return ms < FINEST_MS ? 0 : 1 + Math.floor(Math.log2(ms / FINEST_MS) * PLACES_PER_DOUBLING)
}

/** Where the job of that rank is counted; ranks start at 1. */
function placeAt(rank: number, counts: Counts, others: Counts = []): number {
  const places = Math.max(counts.length, others.length)
  let seen = 0
  for (let place = 0; place < places; place++) {
    seen += (counts[place] ?? 0) + (others[place] ?? 0)
    if (seen >= rank) return place
  }
  return places
}

/** The middle of what is counted there. */
function timeOf(place: number): number {
  return place === 0 ? 0 : FINEST_MS * 2 ** ((place - 0.5) / PLACES_PER_DOUBLING)
}
