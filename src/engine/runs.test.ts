import { describe, expect, it } from 'vitest'
import type { JobRun } from './job-run.ts'
import { Runs } from './runs.ts'

function run(name: string): JobRun {
  return { name, place: 0 } as unknown as JobRun
}

describe('Runs', () => {
  it('has what was added and not deleted, whatever the order', () => {
    const [a, b, c, d] = [run('a'), run('b'), run('c'), run('d')] as [JobRun, JobRun, JobRun, JobRun]
    const runs = new Runs()
    for (const each of [a, b, c, d]) runs.add(each)

    runs.delete(b)
    runs.delete(d)
    runs.delete(a)

    expect([...runs]).toEqual([c])
    expect(runs.size).toBe(1)
  })

  it('keeps the others when one is deleted twice', () => {
    const [a, b, c] = [run('a'), run('b'), run('c')] as [JobRun, JobRun, JobRun]
    const runs = new Runs()
    for (const each of [a, b, c]) runs.add(each)

    runs.delete(a)
    runs.delete(a)

    expect(new Set(runs)).toEqual(new Set([b, c]))
  })

  it('hands out all of them once', () => {
    const a = run('a')
    const runs = new Runs()
    runs.add(a)

    expect(runs.takeAll()).toEqual([a])

    runs.delete(a)
    expect(runs.takeAll()).toEqual([])
  })
})
