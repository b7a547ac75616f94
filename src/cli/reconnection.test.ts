import { describe, expect, it, vi } from 'vitest'
import { UnknownQueueError } from '../errors.ts'
import { CliError } from './cli-error.ts'
import { Reconnection } from './reconnection.ts'

const lost = new CliError('unreachable', 'no answer')

/** How often in a row it takes a failure before it gives up. */
function patienceOf(reconnection: Reconnection): number {
  for (let failures = 0; ; failures++) {
    try {
      reconnection.failed(lost)
    } catch {
      return failures
    }
  }
}

describe('a reconnection', () => {
  it('gives up a server that is gone for half a minute, counted from its last answer', () => {
    const reconnection = new Reconnection()
    for (let failures = 0; failures < 29; failures++) reconnection.failed(lost)
    reconnection.answered()

    expect(patienceOf(reconnection)).toBe(30)
  })

  it('says once that the connection is lost, until there was an answer', () => {
    const reconnection = new Reconnection()
    const onFirst = vi.fn()

    for (let failures = 0; failures < 3; failures++) reconnection.failed(lost, onFirst)
    reconnection.answered()
    reconnection.failed(lost, onFirst)

    expect(onFirst).toHaveBeenCalledTimes(2)
  })

  it.each([
    { what: 'an answer that refuses', error: new CliError('notFound', 'there is no such queue') },
    { what: 'an error of the store that says the same', error: new UnknownQueueError({ queue: 'nowhere' }) },
    { what: 'a mistake of ours', error: new TypeError('undefined is not a function') },
  ])('is none for $what', ({ error }) => {
    const onFirst = vi.fn()

    expect(() => new Reconnection().failed(error, onFirst)).toThrow(error)
    expect(onFirst).not.toHaveBeenCalled()
  })
})
