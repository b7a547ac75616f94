import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ScriptError, StoreOutOfMemoryError } from '../errors.ts'
import { startRedis, type TestRedis } from '../testing/redis-server.ts'
import { openRedis, type Redis } from './redis.ts'
import { runScript, type Script } from './script.ts'

let server: TestRedis
let redis: Redis

beforeAll(async () => {
  server = await startRedis()
  redis = openRedis({ redis: server.path })
})

afterAll(async () => {
  await redis.close()
  await server.stop()
})

type EchoKeys = { first: string; second: string }
type EchoArgs = { name: string; count: number; rest: readonly (string | number)[] }

function makeScript<
  Keys extends Record<keyof Keys, string>,
  Args extends Record<keyof Args, string | number | readonly (string | number)[]>,
>(body: string, keys: Script<Keys, Args>['keys'], args: Script<Keys, Args>['args']): Script<Keys, Args> {
  const source = `#!lua\n${body}`
  const sha = createHash('sha1').update(source).digest('hex')
  return {
    name: 'a-script',
    source,
    sha,
    isReadOnly: false,
    keys,
    args,
    origins: [{ line: 2, file: 'a-script.lua', fileLine: 2 }],
  }
}

const echo = makeScript<EchoKeys, EchoArgs>(
  'return { KEYS, ARGV }',
  ['first', 'second'],
  [
    { name: 'name', kind: 'string' },
    { name: 'count', kind: 'number' },
    { name: 'rest', kind: 'list' },
  ],
)
const keys = { second: 'b', first: 'a' }

it('passes keys and arguments in the order of the script, whatever the order of the names', async () => {
  const reply = await runScript(redis, echo, keys, { rest: ['x', 2], count: 1.5, name: 'n' })

  expect(reply).toEqual([
    ['a', 'b'],
    ['n', '1.5', 'x', '2'],
  ])
})

it('takes a list of several thousand', async () => {
  const rest = Array.from({ length: 7_000 }, (_, index) => `item ${index}`)

  const [, args] = (await runScript(redis, echo, keys, { name: 'n', count: 0, rest })) as [unknown, string[]]

  expect(args.slice(2)).toEqual(rest)
})

it('takes an empty list', async () => {
  expect(await runScript(redis, echo, keys, { name: '', count: 0, rest: [] })).toEqual([
    ['a', 'b'],
    ['', '0'],
  ])
})

it.each([
  [1e15, '1000000000000000'],
  [Number.MAX_SAFE_INTEGER, '9007199254740991'],
  [1e21, '1000000000000000000000'],
  [-1e21, '-1000000000000000000000'],
  [0.1, '0.1'],
  [-0, '0'],
])('writes %d as %s', async (count, text) => {
  const [, args] = (await runScript(redis, echo, keys, { name: '', count, rest: [count] })) as [unknown, string[]]

  expect(args).toEqual(['', text, text])
})

it.each([Number.NaN, Number.POSITIVE_INFINITY, undefined as unknown as number])('refuses %s', async (count) => {
  const args = { name: '', count, rest: [] }

  await expect(runScript(redis, echo, keys, args)).rejects.toThrow(`count must be a string or a finite number`)
})

it('does not compile when a key or an argument is missing', () => {
  // @ts-expect-error second is missing
  void (() => runScript(redis, echo, { first: 'a' }, { name: '', count: 1, rest: [] }))
  // @ts-expect-error count is no text
  void (() => runScript(redis, echo, keys, { name: '', count: '1', rest: [] }))
  // @ts-expect-error there is no argument of this name
  void (() => runScript(redis, echo, keys, { name: '', count: 1, rest: [], other: 1 }))
})

describe('a script the server does not know', () => {
  it('is loaded once and then known', async () => {
    await redis.call('SCRIPT', 'FLUSH')

    await runScript(redis, echo, keys, { name: '', count: 0, rest: [] })

    expect(await redis.call('SCRIPT', 'EXISTS', echo.sha)).toEqual([1])
  })

  it('runs once for each call while the scripts are flushed again and again', async () => {
    const increment = makeScript<{ counter: string }, Record<never, never>>(
      'return redis.call("INCR", KEYS[1])',
      ['counter'],
      [],
    )
    const flusher = server.client()
    const flush = setInterval(() => void flusher.script('FLUSH'), 2)

    const replies = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const mine: unknown[] = []
        for (let call = 0; call < 100; call++) mine.push(await runScript(redis, increment, { counter: 'counter' }, {}))
        return mine
      }),
    ).finally(() => clearInterval(flush))

    expect(new Set(replies.flat()).size).toBe(2_000)
    expect(await redis.call('GET', 'counter')).toBe('2000')
  })
})

describe('a script that fails', () => {
  it('is named, with the file and line it was written in', async () => {
    const broken = makeScript<Record<never, never>, Record<never, never>>('local x = nil\nreturn x.y', [], [])

    const error = await runScript(redis, broken, {}, {}).catch((reason: unknown) => reason)

    expect(error).toBeInstanceOf(ScriptError)
    expect(error).toMatchObject({ code: 'SLUICE_SCRIPT', script: 'a-script' })
    expect((error as Error).message).toContain('a-script.lua:3')
  })

  it('says so when Redis is out of memory', async () => {
    const write = makeScript<{ key: string }, Record<never, never>>(
      'return redis.call("SET", KEYS[1], "x")',
      ['key'],
      [],
    )
    await redis.call('CONFIG', 'SET', 'maxmemory', '1')

    const call = runScript(redis, write, { key: 'full' }, {})

    await expect(call).rejects.toBeInstanceOf(StoreOutOfMemoryError)
    await redis.call('CONFIG', 'SET', 'maxmemory', '0')
    expect(await redis.call('EXISTS', 'full')).toBe(0)
  })
})
