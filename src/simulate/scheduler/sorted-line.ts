/** A place in a line. While it is in one its score stays: take it out, change it, put it in again. */
export interface Place<Of> {
  score: number
  readonly name: string
  readonly of: Of
}

/**
 * Places by score, those of one score by name, as a sorted set of Redis has them. An array with binary search: thousands of
 * tenants move faster in one piece of memory than through the nodes of a tree.
 */
export class SortedLine<Of> {
  readonly #places: Place<Of>[] = []

  get length(): number {
    return this.#places.length
  }

  at(index: number): Place<Of> | undefined {
    return this.#places[index]
  }

  add(place: Place<Of>): void {
    this.#places.splice(this.#indexOf(place), 0, place)
  }

  /** It must be in the line, under the score it has now. */
  remove(place: Place<Of>): void {
    const index = this.#indexOf(place)
    if (this.#places[index] !== place) throw new Error(`${place.name} is not where its score says`)
    this.#places.splice(index, 1)
  }

  /** How many have at most this score. */
  countUpTo(score: number): number {
    let from = 0
    let to = this.#places.length
    while (from < to) {
      const middle = (from + to) >> 1
      if ((this.#places[middle] as Place<Of>).score <= score) from = middle + 1
      else to = middle
    }
    return from
  }

  #indexOf(place: Place<Of>): number {
    let from = 0
    let to = this.#places.length
    while (from < to) {
      const middle = (from + to) >> 1
      if (goesBefore(this.#places[middle] as Place<Of>, place)) from = middle + 1
      else to = middle
    }
    return from
  }
}

export function goesBefore(a: { score: number; name: string }, b: { score: number; name: string }): boolean {
  return a.score < b.score || (a.score === b.score && a.name < b.name)
}
