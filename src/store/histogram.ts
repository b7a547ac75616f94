/**
 * Values counted by the least bound they do not exceed: what a Prometheus histogram is made of. An observation costs a few
 * comparisons and no memory, so that every job can afford some.
 */
export class Histogram {
  /** In ascending order; what is larger than all of them is counted too. */
  readonly bounds: readonly number[]
  readonly #counts: number[]
  #sum: number

  /** @param known - What was counted elsewhere: by bound, and last what is larger than all of them. */
  constructor(bounds: readonly number[], known?: { readonly counts: readonly number[]; readonly sum: number }) {
    this.bounds = bounds
    this.#counts = known ? [...known.counts] : new Array<number>(bounds.length + 1).fill(0)
    this.#sum = known?.sum ?? 0
  }

  observe(value: number): void {
    const { bounds } = this
    let from = 0
    let to = bounds.length
    while (from < to) {
      const middle = (from + to) >> 1
      if (value <= (bounds[middle] as number)) to = middle
      else from = middle + 1
    }
    this.#counts[from] = (this.#counts[from] as number) + 1
    this.#sum += value
  }

  get sum(): number {
    return this.#sum
  }

  /** How many values were at most each bound, and last how many there were. */
  cumulated(): number[] {
    let total = 0
    return this.#counts.map((count) => {
      total += count
      return total
    })
  }
}
