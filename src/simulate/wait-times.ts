/** How jobs waited: quantiles within 2 %, mean and maximum exactly, in memory that does not grow with the jobs. */
export class WaitTimes {
  count = 0
  maxMs = 0
  #sumMs = 0
  /** By the logarithm of the time; the first is what waited for less than `FINEST_MS`. */
  #counts: number[] = []

  add(ms: number): void {
    this.count += 1
    this.#sumMs += ms
    if (ms > this.maxMs) this.maxMs = ms
    const place = placeOf(ms)
    this.#counts[place] = (this.#counts[place] ?? 0) + 1
  }

  addAll(others: WaitTimes): void {
    this.count += others.count
    this.#sumMs += others.#sumMs
    this.maxMs = Math.max(this.maxMs, others.maxMs)
    // The array has holes where nothing was counted: they are passed over.
    others.#counts.forEach((count, place) => {
      this.#counts[place] = (this.#counts[place] ?? 0) + count
    })
  }

  get meanMs(): number {
    return this.count === 0 ? 0 : this.#sumMs / this.count
  }

  /** The time that this share of the jobs did not exceed. */
  quantileMs(share: number): number {
    const rank = Math.ceil(share * this.count)
    if (rank >= this.count) return this.maxMs
    let seen = 0
    for (let place = 0; place < this.#counts.length; place++) {
      seen += this.#counts[place] ?? 0
      if (seen >= rank) return Math.min(this.maxMs, timeOf(place))
    }
    return this.maxMs
  }
}

const FINEST_MS = 0.1
const PLACES_PER_DOUBLING = 18

function placeOf(ms: number): number {
  return ms < FINEST_MS ? 0 : 1 + Math.floor(Math.log2(ms / FINEST_MS) * PLACES_PER_DOUBLING)
}

/** The middle of what is counted there. */
function timeOf(place: number): number {
  return place === 0 ? 0 : FINEST_MS * 2 ** ((place - 0.5) / PLACES_PER_DOUBLING)
}
