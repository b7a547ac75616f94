import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { until } from '../../test/support/until.ts'
import { ScriptError, StoreOutOfMemoryError, StoreUnavailableError } from '../errors.ts'
import { startRedis, type TestRedis } from '../testing/redis-server.ts'
import { libraryNameOf, libraryText, loadLibrary } from './library.ts'
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
  const source = `register("a_script", {})
make = function()
return { a_script = function(KEYS, ARGV)
${body}
end }
end`
  const name = libraryNameOf(source)
  return {
    name: 'a-script',
    library: { name, source, origins: [{ line: 4, file: 'a-script.lua', fileLine: 2 }] },
    calledAs: `${name}_a_script`,
    flags: [],
    keys,
    args,
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

async function libraries(): Promise<string[]> {
  const found = (await redis.call('FUNCTION', 'LIST')) as [string, string][]
  return found.map(([, name]) => name)
}

describe('a script the server does not know', () => {
  it('is loaded once and then known', async () => {
    await redis.call('FUNCTION', 'FLUSH')
    await redis.call('CONFIG', 'RESETSTAT')

    const runs = Array.from({ length: 10 }, () => runScript(redis, echo, keys, { name: '', count: 0, rest: [] }))
    await Promise.all(runs)
    await runScript(redis, echo, keys, { name: '', count: 0, rest: [] })

    expect(await libraries()).toEqual([expect.stringMatching(`^${echo.library.name}_\\d+$`)])
    expect(await redis.call('INFO', 'commandstats')).toMatch(/cmdstat_function\|load:calls=1,/)
  })

  it('may be loaded by several at once', async () => {
    await redis.call('FUNCTION', 'FLUSH')
    const others = Array.from({ length: 4 }, () => redis.duplicate())

    const replies = await Promise.all(
      others.map((other) => runScript(other, echo, keys, { name: '', count: 0, rest: [] })),
    )

    expect(replies).toHaveLength(4)
    expect(await libraries()).toHaveLength(1)
    await Promise.all(others.map((other) => other.close()))
  })

  it('may have been loaded on another day, under another name', async () => {
    await redis.call('FUNCTION', 'FLUSH')
    const { name, source } = echo.library
    const yesterday = Math.floor(Date.now() / 86_400_000) - 1
    await redis.call('FUNCTION', 'LOAD', libraryText({ name, source }, yesterday))

    await loadLibrary(redis, echo.library)

    expect(await libraries()).toEqual([`${name}_${yesterday}`])
  })

  it('runs once for each call while the scripts are flushed again and again', async () => {
    const increment = makeScript<{ counter: string }, Record<never, never>>(
      'return redis.call("INCR", KEYS[1])',
      ['counter'],
      [],
    )
    const flusher = server.client()
    const flush = setInterval(() => void flusher.function('FLUSH'), 2)

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

describe('libraries of other versions', () => {
  const today = Math.floor(Date.now() / 86_400_000)

  async function load(name: string): Promise<void> {
    await redis.call('FUNCTION', 'LOAD', `#!lua name=${name}\nredis.register_function('f_${name}', function() end)`)
  }

  it('are taken away when they were loaded long ago, and no others', async () => {
    await redis.call('FUNCTION', 'FLUSH')
    const young = [`sluice_0123456789ab_${today}`, `sluice_0123456789cd_${today - 29}`]
    const strange = ['sluice_of_somebody_1', 'others_0123456789ab_1']
    for (const name of [...young, ...strange, `sluice_0123456789ef_${today - 30}`]) await load(name)

    await runScript(redis, echo, keys, { name: '', count: 0, rest: [] })

    const left = [`${echo.library.name}_${today}`, ...young, ...strange].sort()
    await until(async () => (await libraries()).length <= left.length)
    expect((await libraries()).sort()).toEqual(left)
  })

  it('stay when they are the last before this one, however old', async () => {
    await redis.call('FUNCTION', 'FLUSH')
    const last = `sluice_0123456789ab_${today - 300}`
    for (const name of [last, `sluice_0123456789cd_${today - 301}`]) await load(name)

    await runScript(redis, echo, keys, { name: '', count: 0, rest: [] })

    await until(async () => (await libraries()).length <= 2)
    expect((await libraries()).sort()).toEqual([`${echo.library.name}_${today}`, last].sort())
  })

  it('are nobody’s concern where the user may not list them', async () => {
    await redis.call('FUNCTION', 'FLUSH')
    await redis.call('ACL', 'SETUSER', 'plain', 'on', '>secret', '~*', '+@all', '-function', '+function|load')
    const plain = openRedis({ redis: { path: server.path, username: 'plain', password: 'secret' } })

    expect(await runScript(plain, echo, keys, { name: 'n', count: 0, rest: [] })).toEqual([
      ['a', 'b'],
      ['n', '0'],
    ])
    await plain.close()
  })
})

it('says what a user lacks who may not load functions', async () => {
  await redis.call('FUNCTION', 'FLUSH')
  await redis.call('ACL', 'SETUSER', 'bare', 'on', '>secret', '~*', '+@all', '-function')
  const bare = openRedis({ redis: { path: server.path, username: 'bare', password: 'secret' } })

  const error = await runScript(bare, echo, keys, { name: '', count: 0, rest: [] }).catch((reason: unknown) => reason)

  expect(error).toMatchObject({ code: 'SLUICE_SCRIPT', message: expect.stringContaining("'function|load'") })
  await bare.close()
})

/** Until the test ends. */
async function refuseWrites(setting: string): Promise<void> {
  onTestFinished(async () => {
    await redis.call('CONFIG', 'SET', setting, '0')
  })
  await redis.call('CONFIG', 'SET', setting, '1')
}

describe('a script that fails', () => {
  it('is named, with the file and line it was written in', async () => {
    const broken = makeScript<Record<never, never>, Record<never, never>>('local x = nil\nreturn x.y', [], [])

    const error = await runScript(redis, broken, {}, {}).catch((reason: unknown) => reason)

    expect(error).toBeInstanceOf(ScriptError)
    expect(error).toMatchObject({ code: 'SLUICE_SCRIPT', script: 'a-script' })
    expect((error as Error).message).toContain('a-script.lua:3')
  })

  it('is said not to have run when the server was lost while it was loaded', async () => {
    const lost = {
      at: () => lost,
      async callWith(command: string): Promise<unknown> {
        if (command === 'FCALL') throw new Error('ERR Function not found')
        throw new StoreUnavailableError({ reason: 'cut', outcome: 'unknown' })
      },
    } as unknown as Redis

    const call = runScript(lost, echo, keys, { name: '', count: 0, rest: [] })

    await expect(call).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE', outcome: 'not-sent' })
  })

  it('says so when the server has no functions', async () => {
    const other = {
      callWith: async () => {
        throw new Error("ERR unknown command 'FCALL', with args beginning with: 'sluice'")
      },
    } as unknown as Redis

    const call = runScript(other, echo, keys, { name: '', count: 0, rest: [] })

    await expect(call).rejects.toThrow('The server has no functions: use Redis 7.0 or newer, or Valkey')
    await expect(call).rejects.toMatchObject({ code: 'SLUICE_UNSUPPORTED_REDIS' })
  })

  it.each([
    { why: 'is full', setting: 'maxmemory', flags: ['allow-oom'] },
    { why: 'is full', setting: 'maxmemory', flags: ['no-writes'] },
    { why: 'has too few replicas', setting: 'min-replicas-to-write', flags: ['no-writes'] },
  ])('runs with $flags in a Redis that $why and has not loaded it', async ({ setting, flags }) => {
    await redis.call('FUNCTION', 'FLUSH')
    await refuseWrites(setting)

    const reply = await runScript(redis, { ...echo, flags }, keys, { name: 'n', count: 0, rest: [] })

    expect(reply).toEqual([
      ['a', 'b'],
      ['n', '0'],
    ])
    expect(await libraries()).toEqual([])
  })

  it('is named with its line in a full Redis too', async () => {
    const broken = makeScript<{ key: string }, Record<never, never>>('local x = nil\nreturn x.y', ['key'], [])
    await refuseWrites('maxmemory')

    const call = runScript(redis, { ...broken, flags: ['no-writes'] }, { key: 'k' }, {})

    await expect(call).rejects.toThrow('a-script.lua:3')
  })

  it('says so when Redis is out of memory', async () => {
    const write = makeScript<{ key: string }, Record<never, never>>(
      'return redis.call("SET", KEYS[1], "x")',
      ['key'],
      [],
    )
    await refuseWrites('maxmemory')

    const call = runScript(redis, write, { key: 'full' }, {})

    await expect(call).rejects.toBeInstanceOf(StoreOutOfMemoryError)
    expect(await redis.call('EXISTS', 'full')).toBe(0)
  })
})
