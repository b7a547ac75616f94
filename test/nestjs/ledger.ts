/** What was done, for tests to await. */
export class Ledger {
  readonly entries: string[] = []
  readonly #waiting: (() => void)[] = []

  add(entry: string): void {
    this.entries.push(entry)
    for (const look of this.#waiting) look()
  }

  /** All entries, sorted, when there are so many of them. */
  reached(count: number): Promise<string[]> {
    return new Promise((resolve) => {
      const look = () => {
        if (this.entries.length >= count) resolve([...this.entries].sort())
      }
      this.#waiting.push(look)
      look()
    })
  }
}
