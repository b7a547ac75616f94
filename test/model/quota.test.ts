import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { QuotaRule } from '../../src/store/settings.ts'
import { OpenQuota } from './reference/quota.ts'

const NOW = 1_000_000_000
const RESET = NOW + 60_000_000
const THRESHOLD = 5
const LEFT = 60
const rule: QuotaRule = { name: 'left', kind: 'quota', threshold: THRESHOLD }

/** What happens next; `pick` chooses which of several calls it happens to. */
const steps = fc.array(
  fc.record({ what: fc.constantFrom('claim', 'arrive', 'answer', 'refuse'), pick: fc.nat(1_000) }),
  { minLength: 50, maxLength: 600 },
)

/** An upstream that counts down, and jobs whose calls arrive, and whose answers are told, in any order. */
class World {
  left = LEFT
  #stored: string | undefined
  #onTheirWay = 0
  /** What the answers that are on their way back say is left. */
  #answers: number[] = []

  claim(): boolean {
    return this.#open((quota) => {
      if (quota.available() === 0) return false
      quota.charge(1)
      this.#onTheirWay += 1
      return true
    })
  }

  arrive(): void {
    if (this.#onTheirWay === 0) return
    this.#onTheirWay -= 1
    this.left -= 1
    this.#answers.push(this.left)
  }

  answer(pick: number): void {
    const [told] = this.#answers.splice(pick % Math.max(1, this.#answers.length), 1)
    if (told === undefined) return
    this.#open((quota) => {
      quota.release(1, undefined)
      quota.learn(undefined, told, RESET, 0)
    })
  }

  /** The call never gets there, and its job has failed. */
  refuse(): void {
    if (this.#onTheirWay === 0) return
    this.#onTheirWay -= 1
    this.#open((quota) => quota.release(1, undefined))
  }

  /** All that can go out does, one after the other. */
  end(): void {
    while (this.#onTheirWay > 0) this.arrive()
    while (this.#answers.length > 0) this.answer(0)
    while (this.claim()) {
      this.arrive()
      this.answer(0)
    }
  }

  #open<T>(use: (quota: OpenQuota) => T): T {
    const context = { jitter: 0, restarts: { count: 0, lastAt: 0 }, hasCosts: false, now: NOW, share: 1 }
    const quota = new OpenQuota(rule, this.#stored, context, true)
    const used = use(quota)
    this.#stored = quota.text()
    return used
  }
}

it('never goes below the threshold as the upstream counts, in whatever order calls arrive and answers are told', () => {
  fc.assert(
    fc.property(steps, (taken) => {
      const world = new World()
      for (const { what, pick } of taken) {
        if (what === 'claim') world.claim()
        if (what === 'arrive') world.arrive()
        if (what === 'answer') world.answer(pick)
        if (what === 'refuse' && pick % 10 === 0) world.refuse()
        expect(world.left).toBeGreaterThanOrEqual(THRESHOLD)
      }
      world.end()
      expect(world.left).toBeGreaterThanOrEqual(THRESHOLD)
    }),
    { numRuns: 500 },
  )
})

it('takes all there is when answers come late and in another order, as long as work goes on', () => {
  const world = new World()
  world.claim()
  world.arrive()
  world.answer(0)
  for (let i = 0; i < 20; i++) {
    world.claim()
    world.arrive()
  }
  for (let i = 0; i < 20; i++) world.answer(19 - i)

  world.end()

  expect(world.left).toBe(THRESHOLD)
})
