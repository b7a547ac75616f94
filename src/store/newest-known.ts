// Who told the newest has told the others by then, unless all of them have lost it. A failover takes seconds.
const FORGET_AFTER_MS = 30_000

/**
 * What is believed of answers that carry an epoch. A later epoch has seen a later change, so older answers count for
 * nothing: they come from those who have not heard of it yet. But whoever starts anew without what was known (sentinels
 * without a volume, a Cluster made again at its addresses) starts at a low epoch, and would never be believed again. So the
 * newest is forgotten when all who can be asked say less, the one that told it among them; and when what it named has not
 * been reached for a while, and all who answer agree on something else.
 */
export class NewestKnown<T extends { readonly epoch: number }> {
  readonly #areAgreed: (answers: readonly T[]) => boolean
  readonly #now: () => number
  #newest: T | undefined
  #lostSince: number | undefined

  constructor(options: { areAgreed: (answers: readonly T[]) => boolean; now?: () => number }) {
    this.#areAgreed = options.areAgreed
    this.#now = options.now ?? (() => performance.now())
  }

  /** What was named cannot be reached. */
  lost(): void {
    this.#lostSince ??= this.#now()
  }

  reached(): void {
    this.#lostSince = undefined
  }

  /** @param isComplete - All who could have told the newest have answered. */
  believe(answers: readonly [T, ...T[]], isComplete: boolean): T {
    const answer = answers.reduce((a, b) => (b.epoch > a.epoch ? b : a))
    const isNews = !this.#newest || answer.epoch >= this.#newest.epoch
    if (isNews || isComplete || (this.#isLostForLong() && this.#areAgreed(answers))) this.#newest = answer
    return this.#newest as T
  }

  #isLostForLong(): boolean {
    return this.#lostSince !== undefined && this.#now() - this.#lostSince >= FORGET_AFTER_MS
  }
}
