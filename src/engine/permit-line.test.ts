import { expect, it } from 'vitest'
import { systemClock } from '../clock.ts'
import { InvalidOptionsError, StoreUnavailableError } from '../errors.ts'
import type { AcquireAnswer, AcquireReply, AcquireRequest } from '../store/scripts/acquire-permits.ts'
import { denied, PermitLine } from './permit-line.ts'

const away = new StoreUnavailableError({ reason: 'test', outcome: 'not-sent' })

/** A store that is told what to answer to each call, and remembers the calls. */
function lineWith(...replies: ((request: AcquireRequest) => AcquireReply | Promise<AcquireReply>)[]) {
  const calls: AcquireRequest[] = []
  const settledWithout: number[] = []
  const line = new PermitLine({
    limits: ['upstream'],
    level: 'normal',
    clock: systemClock,
    acquire: async (request) => {
      calls.push(request)
      const reply = replies[Math.min(calls.length, replies.length) - 1]
      if (!reply) throw new Error('no reply')
      return reply(request)
    },
    settleWithout: ({ permits, resolve }) => {
      settledWithout.push(permits)
      resolve(denied(2_000, null))
    },
  })
  return { line, calls, settledWithout }
}

type Some = Partial<AcquireAnswer>

function answers(each: readonly Some[], { freshMs, fence = '7' }: { freshMs?: number; fence?: string } = {}) {
  const whole = { callers: 1, isGranted: true, waitUs: 0, remaining: 0, grant: {} }
  return (): AcquireReply => ({
    word: 'answers',
    fence,
    freshMs,
    answers: each.map((answer) => ({ ...whole, ...answer })),
  })
}

const grantsAll = (request: AcquireRequest) => answers([{ callers: request.permits.length }])()
/** Grants that are older than they may be as soon as they are there. */
const tooLate = (request: AcquireRequest) => answers([{ callers: request.permits.length }], { freshMs: -1 })()

function askFor(line: PermitLine, permits: readonly number[]) {
  return Promise.all(permits.map((each) => line.ask(each, 'deny')))
}

it('asks once for all who ask in one turn of the event loop, and answers each in its order', async () => {
  const { line, calls } = lineWith(
    answers([
      { callers: 2, remaining: 3 },
      { callers: 2, isGranted: false, waitUs: 1_500, remaining: 3 },
      { callers: 1, remaining: 2 },
    ]),
  )

  const permits = await askFor(line, [4, 4, 4, 4, 1])

  expect(calls).toMatchObject([{ limits: ['upstream'], level: 'normal', permits: [4, 4, 4, 4, 1], stale: undefined }])
  expect(permits).toEqual([
    { granted: true, waitMs: 0, remaining: 7, permits: 4, grant: {}, fence: '7' },
    { granted: true, waitMs: 0, remaining: 3, permits: 4, grant: {}, fence: '7' },
    { granted: false, waitMs: 2, remaining: 3, permits: 0, grant: {}, fence: '' },
    { granted: false, waitMs: 2, remaining: 3, permits: 0, grant: {}, fence: '' },
    { granted: true, waitMs: 0, remaining: 2, permits: 1, grant: {}, fence: '7' },
  ])
})

it('knows of nothing that remains while an upstream has not told', async () => {
  const { line } = lineWith(answers([{ callers: 2, remaining: undefined }]))

  expect(await askFor(line, [1, 1])).toMatchObject([{ remaining: null }, { remaining: null }])
})

it('sends many in two calls, so that one half is answered while Redis decides for the other', async () => {
  const { line, calls } = lineWith(grantsAll)

  await askFor(line, new Array(101).fill(1))

  expect(calls.map(({ permits }) => permits.length)).toEqual([51, 50])
})

it('never has more than two calls on the way, and takes all who came meanwhile with the next', async () => {
  let open = () => {}
  const isOpen = new Promise<void>((resolve) => {
    open = resolve
  })
  const { line, calls } = lineWith(async (request) => {
    await isOpen
    return grantsAll(request)
  })
  const first = askFor(line, new Array(64).fill(1))
  await new Promise(setImmediate)

  const later = askFor(line, [1, 2, 3])
  await new Promise(setImmediate)
  expect(calls.length).toBe(2)
  open()
  await Promise.all([first, later])

  expect(calls.map(({ permits }) => permits.length)).toEqual([32, 32, 3])
})

it('asks again for grants that came too late, and gives them back with that', async () => {
  const { line, calls } = lineWith(
    answers([{ callers: 2 }, { callers: 1, isGranted: false, waitUs: 1_000 }], { freshMs: -1, fence: '7' }),
    answers([{ callers: 2 }], { fence: '8' }),
  )

  const permits = await askFor(line, [2, 2, 5])

  expect(calls[1]).toMatchObject({ permits: [2, 2], stale: { fence: '7', permits: 4 } })
  expect(permits).toMatchObject([
    { granted: true, fence: '8' },
    { granted: true, fence: '8' },
    { granted: false, waitMs: 1 },
  ])
})

it('says which members of a pool had granted what it gives back', async () => {
  const granted = [
    { callers: 1, grant: { tokens: 'x' } },
    { callers: 1, isGranted: false, waitUs: 1_000 },
  ]
  const { line, calls } = lineWith(answers(granted, { freshMs: -1, fence: '7' }), grantsAll)

  await askFor(line, [2, 5])

  expect(calls[1]?.stale).toEqual({ fence: '7', permits: 2, members: [{ limit: 'tokens', member: 'x', permits: 2 }] })
})

it('denies after five grants that came too late, and gives the last back with the next call', async () => {
  const { line, calls } = lineWith(tooLate, tooLate, tooLate, tooLate, tooLate, grantsAll)

  expect(await line.ask(3, 'deny')).toMatchObject({ granted: false, permits: 0, fence: '' })
  expect(calls.length).toBe(5)
  expect(await line.ask(1, 'deny')).toMatchObject({ granted: true })
  expect(calls[5]).toMatchObject({ permits: [1], stale: { fence: '7', permits: 3 } })
})

it('keeps what one call left to be given back, whenever the other ends', async () => {
  let open = () => {}
  const isOpen = new Promise<void>((resolve) => {
    open = resolve
  })
  const held = async (request: AcquireRequest) => {
    await isOpen
    return grantsAll(request)
  }
  const { line, calls } = lineWith(tooLate, held, tooLate, tooLate, tooLate, tooLate, grantsAll)
  const asked = Array.from({ length: 64 }, () => line.ask(1, 'deny'))

  await asked[0]
  open()
  await Promise.all(asked)
  await line.ask(1, 'deny')

  expect(calls.at(-1)).toMatchObject({ permits: [1], stale: { fence: '7', permits: 32 } })
})

it('gives back what each of two calls left, one with each of the next', async () => {
  const tries = Array.from({ length: 10 }, (_, at) => {
    return (request: AcquireRequest) =>
      answers([{ callers: request.permits.length }], { freshMs: -1, fence: String(at) })()
  })
  const { line, calls } = lineWith(...tries, grantsAll)

  await askFor(line, new Array(64).fill(1))
  await line.ask(1, 'deny')
  await line.ask(1, 'deny')
  await line.ask(1, 'deny')

  const [first, second, third] = calls.slice(-3)
  expect([first?.stale, second?.stale].map((stale) => stale?.permits)).toEqual([32, 32])
  expect(new Set([first?.stale?.fence, second?.stale?.fence])).toEqual(new Set(['8', '9']))
  expect(third?.stale).toBeUndefined()
})

it('tells who asks for too much, and asks again for the others with what is still to be given back', async () => {
  const costly = (): AcquireReply => ({ word: 'costly', limit: 'upstream', most: 10 })
  const { line, calls } = lineWith(tooLate, costly, grantsAll)

  const [fits, costs] = await Promise.allSettled([line.ask(1, 'deny'), line.ask(11, 'deny')])

  expect(fits).toMatchObject({ status: 'fulfilled', value: { granted: true } })
  expect(costs).toMatchObject({ status: 'rejected', reason: expect.any(InvalidOptionsError) })
  expect(calls[2]).toMatchObject({ permits: [1], stale: { fence: '7', permits: 12 } })
})

it('settles only those without Redis whom it had not answered', async () => {
  const { line, settledWithout } = lineWith(
    answers([{ callers: 1 }, { callers: 1, isGranted: false, waitUs: 1_000 }], { freshMs: -1 }),
    () => Promise.reject(away),
  )

  const permits = await askFor(line, [2, 5])

  expect(permits).toMatchObject([{ waitMs: 2_000 }, { waitMs: 1 }])
  expect(settledWithout).toEqual([2])
})
