import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ModuleKind, transpileModule } from 'typescript'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Library, libraryNameOf } from '../src/store/library.ts'
import type { Script } from '../src/store/script.ts'
import { buildLua, LuaBuildError, writeWhenChanged } from './build-lua.ts'

let root: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sluice-lua-'))
  mkdirSync(join(root, 'scripts'))
  mkdirSync(join(root, 'lua'))
})

afterEach(() => rmSync(root, { recursive: true }))

function script(name: string, ...lines: string[]): void {
  writeFileSync(join(root, 'scripts', `${name}.lua`), `${lines.join('\n')}\n`)
}

function luaModule(name: string, ...lines: string[]): void {
  writeFileSync(join(root, 'lua', `${name}.lua`), `${lines.join('\n')}\n`)
}

function build(): string {
  return buildLua({ root, scripts: join(root, 'scripts'), modules: join(root, 'lua') })
}

/** What whoever imports the generated text has. */
function imported(text: string): { library: Library; scripts: Script<never, never>[] } {
  const { outputText } = transpileModule(text, { compilerOptions: { module: ModuleKind.CommonJS } })
  const exported = {}
  new Function('exports', 'require', outputText)(exported, () => ({}))
  const { library, ...scripts } = exported as { library: Library } & Record<string, Script<never, never>>
  return { library, scripts: Object.values(scripts) }
}

function onlyScript(text: string): Script<never, never> {
  const [only, ...others] = imported(text).scripts
  if (only === undefined || others.length > 0) throw new Error(`there are ${others.length + 1} scripts`)
  return only
}

/** The lines of the library. */
function built(): string[] {
  return imported(build()).library.source.split('\n')
}

function problems(): string[] {
  try {
    build()
  } catch (error) {
    if (error instanceof LuaBuildError) return error.message.split('\n')
    throw error
  }
  return []
}

describe('a script', () => {
  it('becomes a typed const with its documentation, its keys and its arguments', () => {
    script(
      'claim-jobs',
      '#!lua flags=allow-oom',
      '-- Leases jobs.',
      '-- Replies {"claimed"}.',
      'local ready_key = KEYS[1] -- zset: tenant → score',
      'local wanted_jobs = tonumber(ARGV[1]) -- jobs',
      'local client = ARGV[2] -- who asks',
      'local done, done_from = ARGV, 3 -- list: what is done',
      'return { ready_key, wanted_jobs, client, done[done_from] }',
    )

    const text = build()

    expect(text).toContain(
      [
        '/**',
        ' * Leases jobs.',
        ' * Replies {"claimed"}.',
        ' */',
        'export const claimJobs: Script<',
        '  {',
        '    /** zset: tenant → score */',
        '    ready: string',
        '  },',
        '  {',
        '    /** jobs */',
        '    wantedJobs: number',
        '    /** who asks */',
        '    client: string',
        '    /** list: what is done */',
        '    done: readonly (string | number)[]',
        '  }',
        '> = { library, ',
      ].join('\n'),
    )
    expect(onlyScript(text).keys).toEqual(['ready'])
    expect(onlyScript(text).args).toEqual([
      { name: 'wantedJobs', kind: 'number' },
      { name: 'client', kind: 'string' },
      { name: 'done', kind: 'list' },
    ])
  })

  it('is a function of a library, both named by what the library says', () => {
    script('ping-all', '#!lua flags=no-writes,allow-stale', '-- Pings.', 'return 1')

    const { library, scripts } = imported(build())

    expect(library.source.split('\n')).toEqual([
      'register("ping_all", { "no-writes", "allow-stale" })',
      'make = function()',
      expect.stringMatching(/^local redis, .* = redis, /),
      'local modules, scripts = {}, {}',
      'do',
      'scripts.ping_all = function(KEYS, ARGV)',
      '',
      'return 1',
      'end',
      'end',
      'return scripts',
      'end',
    ])
    expect(library.name).toBe(libraryNameOf(library.source))
    expect(scripts).toMatchObject([{ name: 'ping-all', library, calledAs: `${library.name}_ping_all` }])
  })

  it.each([
    ['#!lua flags=no-writes', ['no-writes']],
    ['#!lua flags=allow-stale,no-writes', ['allow-stale', 'no-writes']],
    ['#!lua', []],
  ])('carries its flags: %s', (shebang, flags) => {
    script('ping', shebang, '-- Pings.', 'return 1')

    expect(onlyScript(build())).toMatchObject({ flags })
  })

  it('loses its comments and indentation, but not what looks like them inside strings', () => {
    script(
      'ping',
      '#!lua',
      '-- Pings.',
      'local a = "-- no comment" -- a comment',
      '--[[ over',
      'lines ]]',
      'local b = [[',
      '  -- kept',
      ']]',
      '  return { a, b }',
    )

    expect(built().join('\n')).toContain(
      '\n\nlocal a = "-- no comment"\n\n\nlocal b = [[\n  -- kept\n]]\nreturn { a, b }\nend\n',
    )
  })
})

describe('a module', () => {
  it('stands once before all that require it, which find it once', () => {
    luaModule('limits', 'local b = require "token_bucket"', 'return b')
    luaModule('token_bucket', 'local bucket = {}', 'return bucket')
    script(
      'ask',
      '#!lua',
      '-- Asks.',
      'local limits = require "limits"',
      'local bucket = require "token_bucket"',
      'return bucket',
    )

    expect(built().slice(3)).toEqual([
      'local modules, scripts = {}, {}',
      'do',
      'local bucket = {}',
      'modules.token_bucket = bucket',
      'end',
      'do',
      'local b = modules.token_bucket',
      '',
      'modules.limits = b',
      'end',
      'do',
      'local limits, bucket = modules.limits, modules.token_bucket',
      'scripts.ask = function(KEYS, ARGV)',
      '',
      '',
      '',
      'return bucket',
      'end',
      'end',
      'return scripts',
      'end',
    ])
  })

  it('stands in the generated text once, however many scripts require it', () => {
    luaModule('bucket', 'local bucket = { "once" }', 'return bucket')
    for (const name of ['ask', 'answer']) {
      script(name, '#!lua', '-- Asks.', 'local bucket = require "bucket"', 'return bucket')
    }

    expect(build().split('once')).toHaveLength(2)
  })

  it('is found again from a line of the built text', () => {
    luaModule('bucket', '-- A bucket.', 'local bucket = {}', 'return bucket')
    script('ask', '#!lua', '-- Asks.', 'local bucket = require "bucket"', 'return bucket')

    expect(imported(build()).library.origins).toEqual([
      { line: 6, file: 'lua/bucket.lua', fileLine: 1 },
      { line: 13, file: 'scripts/ask.lua', fileLine: 2 },
    ])
  })
})

describe('a mistake is named with file and line', () => {
  it.each([
    ['no shebang', ['#!/bin/sh', '-- Doc.', 'return 1'], 'scripts/bad.lua:1: a script begins with `#!lua`'],
    ['no documentation', ['#!lua', 'return 1'], 'scripts/bad.lua:2: a script says what it does'],
    [
      'a gap in the numbers of keys',
      ['#!lua', '-- Doc.', 'local a_key = KEYS[1] -- a', 'local b_key = KEYS[3] -- b'],
      'scripts/bad.lua:4: KEYS are numbered without gaps: expected 2, found 3',
    ],
    [
      'an argument without a comment',
      ['#!lua', '-- Doc.', 'local a = ARGV[1]'],
      'scripts/bad.lua:3: a says in a comment',
    ],
    [
      'a position after the head',
      ['#!lua', '-- Doc.', 'local a = ARGV[1] -- a', 'local b = a .. KEYS[1]'],
      'scripts/bad.lua:4: KEYS outside the head',
    ],
    [
      'an argument after the list',
      ['#!lua', '-- Doc.', 'local a, a_from = ARGV, 1 -- list: a', 'local b = ARGV[2] -- b'],
      'scripts/bad.lua:4: a list is the last argument',
    ],
    [
      'a name that is there twice',
      ['#!lua', '-- Doc.', 'local a = ARGV[1] -- a', 'local a = ARGV[2] -- b'],
      'scripts/bad.lua:4: a is there twice',
    ],
    [
      'an unknown module',
      ['#!lua', '-- Doc.', 'local a = require "buckt"'],
      'scripts/bad.lua:3: unknown module "buckt"; there are: known',
    ],
    [
      'a require inside',
      ['#!lua', '-- Doc.', 'if redis then', '  local a = require "known"', 'end'],
      'scripts/bad.lua:4: "known" is required at the top of the file',
    ],
    ['a late require', ['#!lua', '-- Doc.', 'call(require "x")'], 'scripts/bad.lua:3: require is written as'],
  ])('%s', (_, lines, message) => {
    luaModule('known', 'local m = {}', 'return m')
    script('bad', ...lines)

    expect(problems()).toEqual([expect.stringContaining(message)])
  })

  it('a function that the module does not have', () => {
    luaModule('bucket', '-- A bucket.', 'local bucket = {}', 'function bucket.charge() end', 'return bucket')
    luaModule('limits', 'local bucket = require "bucket"', 'local x = bucket.refund', 'local m = {}', 'return m')
    script('ask', '#!lua', '-- Asks.', 'local b = require "bucket"', 'return b.charge() + b.chrage()')

    expect(problems()).toEqual([
      'lua/limits.lua:2: there is no bucket.refund',
      'scripts/ask.lua:4: there is no b.chrage',
    ])
  })

  it('a module whose name is none in Lua', () => {
    luaModule('token-bucket', 'local bucket = {}', 'return bucket')

    expect(problems()).toEqual(['lua/token-bucket.lua:1: a module has a name that Lua can have: with _ between words'])
  })

  it('a circle of modules', () => {
    luaModule('a', 'local b = require "b"', 'local m = {}', 'return m')
    luaModule('b', 'local a = require "a"', 'local m = {}', 'return m')
    script('ask', '#!lua', '-- Asks.', 'local a = require "a"', 'return a')

    expect(problems()).toEqual(['lua/a.lua:1: modules require each other in a circle: a → b → a'])
  })

  it('a module that returns nothing, or looks at positions', () => {
    luaModule('a', 'local x = ARGV[1]')

    expect(problems()).toEqual([
      expect.stringContaining('lua/a.lua:1: a module ends with `return`'),
      expect.stringContaining('lua/a.lua:1: ARGV outside the head'),
    ])
  })

  it.each([
    ['a name', '  last = state'],
    ['a name, with a comment', '  last = state -- so,'],
    ['a name after a condition', '  if not last then last = state end'],
    ['a name, on the next line', '  last ='],
    ['a function', '  rate = state'],
    ['a field', '  bucket.charge = state'],
    ['an element', '  SEEN[state] = true'],
    ['an element by text', '  SEEN["a"] = true'],
    ['a further element', '  SEEN[#SEEN + 1] = true'],
    ['a field of an element', '  SEEN[state.a].b = true'],
    ['several', '  state.x, SEEN.y = 1, state'],
    ['an element that is inserted', '  table.insert(SEEN, state)'],
    ['an element that is set', '  rawset(SEEN, state, 1)'],
  ])('a module that keeps something between calls: %s', (_, line) => {
    luaModule(
      'bucket',
      'local bucket, last = {}, nil',
      'local SEEN = {}',
      'local function rate() end',
      'function bucket.charge(state)',
      line,
      'end',
      'return bucket',
    )

    expect(problems()).toEqual([expect.stringContaining('lua/bucket.lua:5: all calls share this')])
  })

  it('a script that keeps something in a module', () => {
    luaModule('bucket', 'local bucket = { kept = 1 }', 'bucket.kept = 1', 'return bucket')
    script('ask', '#!lua', '-- Asks.', 'local bucket = require "bucket"', 'bucket.kept = 2', 'return bucket.kept')

    expect(problems()).toEqual([expect.stringContaining('scripts/ask.lua:4: all calls share this')])
  })

  it('a module that asks Redis when it is made', () => {
    luaModule('bucket', 'local bucket = {}', 'local now = redis.call("TIME")', 'return bucket')

    expect(problems()).toEqual(['lua/bucket.lua:2: Redis is asked by functions of a module only'])
  })

  it('but not one that has fields and locals of the same name', () => {
    luaModule(
      'bucket',
      'local bucket = {}',
      'local DEFAULTS = {',
      '  bucket = 1,',
      '}',
      'function bucket.charge(state)',
      '  state.bucket = DEFAULTS',
      '  if bucket == state and bucket.charge == DEFAULTS.bucket then',
      '    state.a, state.b = bucket, DEFAULTS[state]',
      '    local both = { bucket = 1, charge = bucket.charge }',
      '    local bucket = 1',
      '  end',
      'end',
      'return bucket',
    )

    expect(problems()).toEqual([])
  })

  it('a second table with functions in a module', () => {
    luaModule('bad', '-- Bad.', 'local bad, other = {}, {}', 'function other.one() end', 'return bad')

    expect(problems()).toEqual(['lua/bad.lua:3: other is a table with functions: give it a module of its own'])
  })

  it('and all mistakes are named at once', () => {
    script('one', '#!lua', 'return KEYS[1]')
    script('two', '#!lua', 'return ARGV[1]')

    expect(problems()).toHaveLength(4)
  })
})

it('without scripts the module is empty', () => {
  expect(build()).toContain('export {}')
})

it('an unchanged file is not written again', () => {
  const file = join(root, 'out', 'generated.ts')

  expect(writeWhenChanged(file, 'a')).toBe(true)
  const written = statSync(file).mtimeMs

  expect(writeWhenChanged(file, 'a')).toBe(false)
  expect(statSync(file).mtimeMs).toBe(written)
  expect(readFileSync(file, 'utf8')).toBe('a')
})
