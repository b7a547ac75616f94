/** The script under way. All that it grants counts as asked for at once. */
export interface ScriptUnderWay {
  readonly number: number
  /** How many tenants were in line or parked when it began. */
  readonly active: number
}

/** At what pace permits come, in µs. */
export interface Pace {
  /** The most that can be asked for at once. */
  readonly count: number
  readonly burst: number
  readonly interval: number
  /** What came free so long ago can still be granted. */
  readonly reach: number
}

/** The one number of a bucket, the theoretical arrival time, as src/store/lua/bucket.lua counts it. */
export class CellRate {
  readonly #script: ScriptUnderWay
  #tat = 0
  #tatBefore = 0
  #taken = 0
  #takenBy = -1

  constructor(script: ScriptUnderWay) {
    this.#script = script
  }

  available({ burst, interval, reach }: Pace, now: number): number {
    const taken = this.#takenNow
    const ahead = Math.max(taken > 0 ? this.#tatBefore : this.#tat, now - reach) - now
    return Math.max(0, Math.floor(burst - ahead / interval) - taken)
  }

  instant({ count, burst, interval, reach }: Pace, permits: number): number {
    const needed = Math.min(permits, count)
    const saved = this.#tat - (burst - needed) * interval
    const over = (this.#takenNow + needed - burst) * interval
    const isWithinReach = this.#takenNow > 0 && over <= reach
    return Math.max(0, Math.ceil(isWithinReach ? Math.min(saved, this.#tatBefore + over) : saved))
  }

  charge({ burst, interval, reach }: Pace, permits: number, now: number): void {
    if (this.#takenNow === 0) {
      this.#tatBefore = this.#tat
      this.#taken = 0
      this.#takenBy = this.#script.number
    }
    this.#taken += permits
    const over = (this.#taken - burst) * interval
    const rested = now - this.#tatBefore
    let late = 0
    if (over >= 0) late = rested <= reach ? rested : over <= reach ? over : 0
    this.#tat = Math.max(this.#tatBefore, now - late) + this.#taken * interval
  }

  /** It was charged at a slower pace: one permit is free now, the others come at the new one. */
  quicken({ burst, interval }: Pace, now: number): void {
    if (this.#tat > now + 2 * burst * interval) this.#tat = now + (burst - 1) * interval
  }

  get #takenNow(): number {
    return this.#takenBy === this.#script.number ? this.#taken : 0
  }
}
