/** Something that happens at an instant of virtual time. */
export interface Happening {
  happen(): void
}

interface Entry {
  /** In µs. */
  readonly at: number
  /** What was planned first happens first, where the instant is the same. */
  readonly order: number
  readonly what: Happening
}

/** What is still to happen, the earliest first: a binary heap. */
export class EventQueue {
  readonly #heap: Entry[] = []
  #planned = 0

  get size(): number {
    return this.#heap.length
  }

  plan(at: number, what: Happening): void {
    this.#planned += 1
    const entry = { at, order: this.#planned, what }
    const heap = this.#heap
    let place = heap.length
    heap.push(entry)
    while (place > 0) {
      const above = (place - 1) >> 1
      if (!isBefore(entry, heap[above] as Entry)) break
      heap[place] = heap[above] as Entry
      place = above
    }
    heap[place] = entry
  }

  /** When the next happens; undefined when nothing is to come. */
  get nextAt(): number | undefined {
    return this.#heap[0]?.at
  }

  take(): Happening {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined) throw new Error('nothing is to happen')
    if (first !== last) this.#sink(last)
    return first.what
  }

  #sink(entry: Entry): void {
    const heap = this.#heap
    let place = 0
    for (;;) {
      let below = 2 * place + 1
      if (below >= heap.length) break
      const right = heap[below + 1]
      if (right !== undefined && isBefore(right, heap[below] as Entry)) below += 1
      if (!isBefore(heap[below] as Entry, entry)) break
      heap[place] = heap[below] as Entry
      place = below
    }
    heap[place] = entry
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order)
}
