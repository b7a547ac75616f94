import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { withResolvers } from '../../test/support/with-resolvers.ts'
import { OutcomeUnknownError, StoreOutOfMemoryError, StoreUnavailableError } from '../errors.ts'
import { queueKeys } from './keys.ts'
import type { Redis } from './redis.ts'
import { REPEATED_FOR_MS } from './repeat.ts'
import { READ_FOR_MS, REMEMBERED, Requests } from './requests.ts'
import type { Script } from './script.ts'

const script: Script<{ queue: string }, { request: number; server: string }> = {
  name: 'a-script',
  library: { name: 'a_library', source: '', origins: [] },
  calledAs: 'a_library_a_script',
  flags: [],
  keys: ['queue'],
  args: [
    { name: 'request', kind: 'number' },
    { name: 'server', kind: 'string' },
  ],
}
const reading: typeof script = { ...script, name: 'a-read', flags: ['no-writes'] }

/** Answers, or fails, as the test says; sees the request numbers. */
class FakeRedis {
  serverId = 'one'
  readonly numbers: number[] = []
  answer: (number: number, nth: number) => Promise<unknown> = async (number) => ['done', number]

  ready(): Promise<void> {
    return Promise.resolve()
  }

  at(): this {
    return this
  }

  confirm(): Promise<boolean> {
    return Promise.resolve(true)
  }

  callWith(_command: string, args: readonly unknown[]): Promise<unknown> {
    const number = args[3] as number
    this.numbers.push(number)
    return this.answer(number, this.numbers.filter((each) => each === number).length)
  }
}

const lost = new StoreUnavailableError({ reason: 'cut', outcome: 'unknown' })
const notSent = new StoreUnavailableError({ reason: 'down', outcome: 'not-sent' })

let redis: FakeRedis
let registrations: boolean[]
let requests: Requests

beforeEach(() => {
  redis = new FakeRedis()
  registrations = []
  requests = new Requests({
    client: 'me',
    redis: redis as unknown as Redis,
    keys: queueKeys('x', 'q', 'me'),
    register: async (isAgain) => {
      registrations.push(isAgain)
    },
  })
})

afterEach(() => {
  vi.useRealTimers()
})

function run(giveUpAfterMs?: number) {
  const options = giveUpAfterMs === undefined ? {} : { giveUpAfterMs }
  return requests.run(script, (request, server) => ({ request, server }), options)
}

function read() {
  return requests.run(reading, (request, server) => ({ request, server }))
}

it('numbers requests from 1 on', async () => {
  await run()
  await run()

  expect(redis.numbers).toEqual([1, 2])
})

it('repeats a request under its number until it is answered', async () => {
  redis.answer = async (number, nth) => {
    if (nth < 3) throw nth === 1 ? lost : notSent
    return ['done', number]
  }

  expect(await run()).toEqual(['done', 1])
  expect(redis.numbers).toEqual([1, 1, 1])
})

it('asks anew for the server with each try', async () => {
  const servers: string[] = []
  redis.answer = async (_number, nth) => {
    if (nth === 2) return ['done']
    redis.serverId = 'two'
    throw lost
  }

  await requests.run(script, (request, server) => {
    servers.push(server)
    return { request, server }
  })

  expect(servers).toEqual(['one', 'two'])
})

it('rejects at once with anything but a lost connection', async () => {
  redis.answer = async () => {
    throw new StoreOutOfMemoryError()
  }

  await expect(run()).rejects.toThrow(StoreOutOfMemoryError)
  expect(redis.numbers).toEqual([1])
})

it('registers the queue and asks again, under a new number, when the store does not know it', async () => {
  redis.answer = async (number) => (number === 1 ? ['unregistered'] : ['done'])

  expect(await run()).toEqual(['done'])
  expect(registrations).toEqual([true])
  expect(redis.numbers).toEqual([1, 2])
})

it('gives up a store that does not know the queue however often it is registered, and says what may help', async () => {
  redis.answer = async () => ['unregistered']

  await expect(run()).rejects.toThrow(
    /although this process has just registered it\. Keys may have been deleted by hand/,
  )
  expect(registrations).toHaveLength(5)
})

describe('giving up', () => {
  it('says that the outcome is unknown if any try may have run', async () => {
    redis.answer = async (_number, nth) => {
      throw nth === 1 ? lost : notSent
    }

    const error = await run(60).catch((thrown: unknown) => thrown)

    expect(error).toBeInstanceOf(OutcomeUnknownError)
    expect(error).toMatchObject({ operation: 'a-script', cause: notSent })
  })

  it('passes the error on if none can have run', async () => {
    redis.answer = async () => {
      throw notSent
    }

    await expect(run(60)).rejects.toBe(notSent)
  })

  it('stops well within the minute for which replies are remembered', async () => {
    vi.useFakeTimers()
    redis.answer = async () => {
      throw lost
    }
    const started = performance.now()

    const given = run(3_600_000).catch(() => performance.now() - started)
    await vi.runAllTimersAsync()

    expect(await given).toBeLessThan(50_000)
  })
})

describe('a read', () => {
  it('takes no number, and does not wait for those that others have', async () => {
    const held = holdAll()
    const all = Array.from({ length: 17 }, () => run())
    await vi.waitFor(() => expect(held.size).toBe(16))

    const found = read()
    await vi.waitFor(() => expect(held.has(0)).toBe(true))
    held.get(0)?.()

    expect(await found).toEqual(['done', 0])
    expect(redis.numbers.filter((number) => number > 16)).toEqual([])

    held.get(1)?.()
    await vi.waitFor(() => expect(held.has(17)).toBe(true))
    for (const answer of held.values()) answer()
    await Promise.all(all)
  })

  it('is repeated while the store is away, and given up when that has been waited for', async () => {
    vi.useFakeTimers()
    redis.answer = async () => {
      throw lost
    }
    const started = performance.now()

    const given = read().catch((error) => ({ error, afterMs: performance.now() - started }))
    await vi.runAllTimersAsync()

    expect(await given).toEqual({ error: lost, afterMs: expect.closeTo(READ_FOR_MS, -3) })
    expect(redis.numbers.length).toBeGreaterThan(1)
  })

  it('gets a store that does not know the queue told of it', async () => {
    redis.answer = async (_number, nth) => (nth === 1 ? ['unregistered'] : ['done'])

    expect(await read()).toEqual(['done'])
    expect(registrations).toEqual([true])
  })
})

describe('a signal', () => {
  const reason = new Error('enough')
  let given: AbortController

  beforeEach(() => {
    given = new AbortController()
  })

  function runGiven() {
    return requests.run(script, (request, server) => ({ request, server }), { signal: given.signal })
  }

  it('that is aborted while the store is waited for lets nothing be sent, and others go on', async () => {
    const connected = withResolvers<void>()
    redis.ready = () => connected.promise
    const running = runGiven()

    given.abort(reason)
    connected.resolve()

    await expect(running).rejects.toBe(reason)
    expect(redis.numbers).toEqual([])
    expect(await run()).toEqual(['done', 2])
  })

  it('that is aborted after tries that were not sent ends them', async () => {
    redis.answer = async () => {
      given.abort(reason)
      throw notSent
    }

    await expect(runGiven()).rejects.toBe(reason)
    expect(redis.numbers).toEqual([1])
  })

  it('that is aborted when the call may have run leaves it to be repeated until that is known', async () => {
    redis.answer = async (number, nth) => {
      if (nth === 3) return ['done', number]
      given.abort(reason)
      throw nth === 1 ? lost : notSent
    }

    expect(await runGiven()).toEqual(['done', 1])
    expect(redis.numbers).toEqual([1, 1, 1])
  })
})

/** Lets each request be answered by hand. */
function holdAll(): Map<number, () => void> {
  const held = new Map<number, () => void>()
  redis.answer = (number) => new Promise((resolve) => held.set(number, () => resolve(['done', number])))
  return held
}

describe('the window of 16', () => {
  it('lets no request out while one sixteen numbers older is unanswered', async () => {
    const held = holdAll()
    const all = Array.from({ length: 20 }, () => run())
    await vi.waitFor(() => expect(held.size).toBe(16))

    for (let number = 2; number <= 16; number++) held.get(number)?.()
    await Promise.all(all.slice(1, 16))

    expect(redis.numbers.at(-1)).toBe(16)

    held.get(1)?.()
    await vi.waitFor(() => expect(redis.numbers.at(-1)).toBe(20))
    for (const answer of held.values()) answer()
    expect(await Promise.all(all)).toHaveLength(20)
  })

  it('goes on after a request that was given up', async () => {
    const held = holdAll()
    const answer = redis.answer
    redis.answer = (number, nth) => (number === 1 ? Promise.reject(notSent) : answer(number, nth))
    const givenUp = run(60)
    const others = Array.from({ length: 16 }, () => run())

    await expect(givenUp).rejects.toBe(notSent)

    await vi.waitFor(() => expect(redis.numbers).toContain(17))
    for (const answer of held.values()) answer()
    expect(await Promise.all(others)).toHaveLength(16)
  })

  it('keeps every number apart from all that may still be repeated, whatever order the answers come in', async () => {
    const open = new Set<number>()
    let worst = 0
    redis.answer = async (number) => {
      open.add(number)
      worst = Math.max(worst, Math.max(...open) - Math.min(...open))
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 3))
      open.delete(number)
      return ['done']
    }

    await Promise.all(Array.from({ length: 300 }, () => run()))

    expect(worst).toBeLessThan(16)
  })
})

it('are repeated only while scripts remember them', () => {
  const lua = readFileSync(new URL('./lua/requests.lua', import.meta.url), 'utf8')

  expect(Number(/^local FOR_MS = "(\d+)"/m.exec(lua)?.[1])).toBeGreaterThan(REPEATED_FOR_MS)
  expect(Number(/^local REMEMBERED = (\d+)/m.exec(lua)?.[1])).toBe(REMEMBERED)
})
