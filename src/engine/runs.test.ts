import { describe, expect, it } from 'vitest'
import type { Clock } from '../clock.ts'
import type { JobRun } from './job-run.ts'
import { Runs } from './runs.ts'

/** Moves only when it is told to; at most one timer is set at a time. */
class ManualClock implements Clock {
  time = 1_000
  timer: { fn: () => void; at: number } | undefined

  now(): number {
    return this.time
  }

  date(): number {
    return this.time
  }

  setTimer(fn: () => void, ms: number): () => void {
    if (this.timer) throw new Error('a second timer')
    this.timer = { fn, at: this.time + ms }
    return () => {
      this.timer = undefined
    }
  }

  /** Rings the timer, if it is due. */
  moveTo(time: number): void {
    this.time = time
    const { timer } = this
    if (!timer || timer.at > time) return
    this.timer = undefined
    timer.fn()
  }
}

interface FakeRun {
  readonly name: string
  readonly startedAt: number
  readonly timeoutMs: number
  place: number
  timeOut(): void
}

function setUp() {
  const clock = new ManualClock()
  const runs = new Runs(clock)
  const timedOut: string[] = []
  const add = (name: string, timeoutMs = 30_000): JobRun => {
    const fake: FakeRun = { name, startedAt: clock.time, timeoutMs, place: 0, timeOut: () => timedOut.push(name) }
    const run = fake as unknown as JobRun
    runs.add(run)
    return run
  }
  const names = () => [...runs].map((run) => (run as unknown as FakeRun).name).sort()
  return { clock, runs, timedOut, add, names }
}

describe('the runs under way', () => {
  it('are those that were added and not deleted, in whatever order', () => {
    const { runs, add, names } = setUp()
    const [a, b, , d] = ['a', 'b', 'c', 'd'].map((name) => add(name)) as [JobRun, JobRun, JobRun, JobRun]

    for (const run of [b, d, a]) runs.delete(run)

    expect(names()).toEqual(['c'])
    expect(runs.size).toBe(1)
  })

  it('stay when another is deleted twice', () => {
    const { runs, add, names } = setUp()
    const a = add('a')
    add('b')
    add('c')

    runs.delete(a)
    runs.delete(a)

    expect(names()).toEqual(['b', 'c'])
  })

  it('are handed out once, and then no timer is left', () => {
    const { clock, runs, add } = setUp()
    const a = add('a')

    expect(runs.takeAll()).toEqual([a])

    runs.delete(a)
    expect(runs.takeAll()).toEqual([])
    expect(clock.timer).toBeUndefined()
  })
})

describe('a run that takes too long', () => {
  it('is told at its deadline, whatever was added before and after', () => {
    const { clock, runs, timedOut, add } = setUp()
    add('long', 500)
    const short = add('short', 100)
    add('middle', 200)

    clock.moveTo(1_100)
    expect(timedOut).toEqual(['short'])

    runs.delete(short)
    clock.moveTo(1_200)
    expect(timedOut).toEqual(['short', 'middle'])
  })

  it('is not told when it ended in time; the timer then waits for the next deadline', () => {
    const { clock, runs, timedOut, add } = setUp()
    const a = add('a', 100)
    clock.time = 1_050
    add('b', 100)
    runs.delete(a)

    clock.moveTo(1_100)

    expect(timedOut).toEqual([])
    expect(clock.timer?.at).toBe(1_150)
  })

  it('leaves no timer behind when nothing runs any more', () => {
    const { clock, runs, add } = setUp()
    runs.delete(add('a', 100))

    clock.moveTo(1_100)

    expect(clock.timer).toBeUndefined()
  })

  it('is told when the timer rings a little early, at its deadline and not before', () => {
    const { clock, timedOut, add } = setUp()
    add('a', 100)
    clock.time = 1_099.5

    clock.timer?.fn()
    expect(timedOut).toEqual([])

    clock.moveTo(1_100)
    expect(timedOut).toEqual(['a'])
  })
})
