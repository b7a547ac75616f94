import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { Trial } from './trial.ts'

let trial: Trial
afterEach(() => trial.stop())

describe('a Redis that forgets its scripts ten times a second', () => {
  it('costs no call, no job and no second run', async () => {
    trial = await Trial.start({ upstream: true })
    await Promise.all([trial.worker(), trial.worker()])
    const direct = trial.redis.client()
    let flushes = 0
    const flusher = setInterval(() => {
      Promise.all([direct.function('FLUSH'), direct.script('FLUSH')]).then(
        () => flushes++,
        () => clearInterval(flusher),
      )
    }, 100)
    onTestFinished(() => clearInterval(flusher))

    // Not written down as a fault: it must excuse nothing.
    const results = await Promise.all([
      trial.submitted({ count: 1_500, chunk: 10, everyMs: 25, holdMs: 5 }),
      trial.submitted({ count: 1_500, chunk: 10, everyMs: 25, holdMs: 5, ids: 'generated' }),
    ])
    await trial.drained()

    expect(flushes).toBeGreaterThan(20)
    expect(results.map(({ accepted, unheard }) => ({ accepted, unheard }))).toEqual([
      { accepted: 1_500, unheard: [] },
      { accepted: 1_500, unheard: [] },
    ])
    await trial.expectPromisesKept()
  })
})
