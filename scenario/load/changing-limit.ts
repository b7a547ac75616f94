import type { Span } from '../../test/support/arrivals.ts'

interface Change {
  readonly value: number
  /** When it was asked for; from then on it may count. */
  readonly askedAt: number
  /** When it was said to be done; what was asked for before no longer counts then. */
  readonly doneAt: number
}

/** Where a limit was used most: 1 is all that was allowed. */
export interface Worst {
  readonly overLimit: number
  readonly count: number
  readonly allowed: number
  readonly first: number
  readonly last: number
}

/**
 * A limit that is changed while it is used, as an upstream may hold its caller to it: each call counts under any value that
 * may have been in force when its permit was granted. Instants in milliseconds of one clock.
 */
export class ChangingLimit {
  readonly #changes: Change[] = []
  readonly #wayMs: number

  /** @param wayMs - The longest way from grant to upstream. */
  constructor({ wayMs }: { wayMs: number }) {
    this.#wayMs = wayMs
  }

  /** Changes come in order. */
  changed(value: number, { askedAt, doneAt }: { askedAt: number; doneAt: number }): void {
    this.#changes.push({ value, askedAt, doneAt })
  }

  /** The largest value in force for grants whose calls arrive between the two instants; 0 before the first. */
  largest({ from, to }: Span): number {
    const values = this.#changes.filter(({ askedAt }, index) => {
      const replacedAt = this.#changes[index + 1]?.doneAt ?? Number.POSITIVE_INFINITY
      return askedAt <= to && replacedAt + this.#wayMs >= from
    })
    return Math.max(0, ...values.map(({ value }) => value))
  }

  /** The sliding window with the most calls over what was allowed in it. `times` is sorted. */
  busiestWindow(times: readonly number[], windowMs: number): Worst {
    let worst: Worst = { overLimit: 0, count: 0, allowed: 0, first: 0, last: 0 }
    let start = 0
    times.forEach((last, end) => {
      while (last - (times[start] as number) >= windowMs) start++
      const first = times[start] as number
      const count = end - start + 1
      const allowed = this.largest({ from: first, to: last })
      if (count / allowed > worst.overLimit) worst = { overLimit: count / allowed, count, allowed, first, last }
    })
    return worst
  }

  /** The most calls under way when another one came, itself included, over what was allowed then. */
  mostAtOnceOverLimit(calls: readonly Span[]): number {
    const inOrder = calls.toSorted((a, b) => a.from - b.from)
    let worst = 0
    let open: Span[] = []
    for (const call of inOrder) {
      open = open.filter(({ to }) => to > call.from)
      open.push(call)
      worst = Math.max(worst, open.length / this.largest({ from: call.from, to: call.from }))
    }
    return worst
  }
}
