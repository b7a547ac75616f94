import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ModuleKind, transpileModule } from 'typescript'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Script, scriptOf } from '../src/store/script.ts'
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

/** The only script of the generated text, as whoever imports it has it. */
function onlyScript(text: string): Script<never, never> {
  const { outputText } = transpileModule(text, { compilerOptions: { module: ModuleKind.CommonJS } })
  const exported: Record<string, Script<never, never>> = {}
  new Function('exports', 'require', outputText)(exported, () => ({ scriptOf }))
  const [only, ...others] = Object.values(exported)
  if (only === undefined || others.length > 0) throw new Error(`there are ${others.length + 1} scripts`)
  return only
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
        '> = scriptOf(',
      ].join('\n'),
    )
    expect(onlyScript(text).keys).toEqual(['ready'])
    expect(onlyScript(text).args).toEqual([
      { name: 'wantedJobs', kind: 'number' },
      { name: 'client', kind: 'string' },
      { name: 'done', kind: 'list' },
    ])
  })

  it('carries the hash of its text', () => {
    script('ping', '#!lua', '-- Pings.', 'return 1')

    const text = build()

    const { source, sha } = onlyScript(text)
    expect(source).toBe('#!lua\n\nreturn 1')
    expect(sha).toBe(createHash('sha1').update(source).digest('hex'))
  })

  it.each([
    ['#!lua flags=no-writes', true],
    ['#!lua flags=allow-stale,no-writes', true],
    ['#!lua flags=allow-oom', false],
    ['#!lua', false],
  ])('says whether it only reads, by its flags: %s', (shebang, isReadOnly) => {
    script('ping', shebang, '-- Pings.', 'return 1')

    expect(onlyScript(build())).toMatchObject({ isReadOnly })
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

    expect(onlyScript(build()).source).toBe(
      '#!lua\n\nlocal a = "-- no comment"\n\n\nlocal b = [[\n  -- kept\n]]\nreturn { a, b }',
    )
  })
})

describe('a module', () => {
  it('stands once before all that require it, and runs when it is first required', () => {
    luaModule('bucket', 'local bucket = {}', 'return bucket')
    luaModule('limits', 'local b = require "bucket"', 'return { b = b }')
    script('ask', '#!lua', '-- Asks.', 'local limits = require "limits"', 'local bucket = require "bucket"', 'return 1')

    const lines = onlyScript(build()).source.split('\n')

    expect(lines).toEqual([
      '#!lua',
      'local made, make = { bucket = nil, limits = nil }',
      'do',
      'local bucket = {}',
      'made.bucket = bucket',
      'end',
      'do',
      'local b = made.bucket or make("bucket")',
      'made.limits = { b = b }',
      'end',
      '',
      'local limits = made.limits or make("limits")',
      'local bucket = made.bucket or make("bucket")',
      'return 1',
    ])
  })

  it('is made by nobody who does not need it, when it is required where it is needed', () => {
    luaModule('bucket', 'local bucket = {}', 'return bucket')
    luaModule('limits', 'local limits = {}', 'return limits')
    script(
      'ask',
      '#!lua',
      '-- Asks.',
      'local limits = require "limits"',
      'local wanted = tonumber(ARGV[1]) -- jobs',
      'if wanted > 0 then',
      '  local bucket = require "bucket"',
      'end',
      'return limits',
    )

    const lines = onlyScript(build()).source.split('\n')

    expect(lines.slice(1)).toEqual([
      'local made, make = { limits = nil }',
      'do',
      'local limits = {}',
      'made.limits = limits',
      'end',
      'make = function(name)',
      'if name == "bucket" then',
      'local bucket = {}',
      'made.bucket = bucket',
      'end',
      'return made[name]',
      'end',
      '',
      'local limits = made.limits or make("limits")',
      'local wanted = tonumber(ARGV[1])',
      'if wanted > 0 then',
      'local bucket = made.bucket or make("bucket")',
      'end',
      'return limits',
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

    expect(onlyScript(build()).origins).toEqual([
      { line: 4, file: 'lua/bucket.lua', fileLine: 1 },
      { line: 8, file: 'scripts/ask.lua', fileLine: 2 },
    ])
  })
})

describe('a function of a module', () => {
  /** The functions that are left of a module when the script is `body`. */
  function functionsLeft(...body: string[]): string[] {
    script('ask', '#!lua', '-- Asks.', ...body, 'return 1')
    return [...onlyScript(build()).source.matchAll(/^(?:local )?function (?:bucket\.)?(\w+)/gm)].map(
      ([, name = '']) => name,
    )
  }

  beforeEach(() => {
    luaModule(
      'bucket',
      '-- A bucket.',
      'local bucket = {}',
      '',
      'local function rate(state)',
      '  return state.rate',
      'end',
      '',
      'function bucket.charge(state)',
      '  return rate(state)',
      'end',
      '',
      'function bucket.refund() end',
      '',
      'function bucket.rest(state)',
      '  return bucket.refund(state)',
      'end',
      '',
      'return bucket',
    )
  })

  it.each([
    ['what it does not call', ['local bucket = require "bucket"'], []],
    ['what that calls in turn', ['local bucket = require "bucket"', 'bucket.charge({})'], ['rate', 'charge']],
    ['an empty one', ['local bucket = require "bucket"', 'bucket.rest({})'], ['refund', 'rest']],
    ['under another name', ['local b = require "bucket"', 'b.charge({})'], ['rate', 'charge']],
    ['a name in a text', ['local bucket = require "bucket"', 'local x = "bucket.charge"'], []],
    [
      'a module that goes by a field of something',
      ['local bucket = require "bucket"', 'local state = { meter = bucket }', 'state.meter.refund(state)'],
      ['refund'],
    ],
    [
      'a module that is handed to a function',
      ['local bucket = require "bucket"', 'local state = setmetatable({}, bucket)', 'state.refund(state)'],
      ['refund'],
    ],
    [
      'a field of what can be no module',
      ['local bucket = require "bucket"', 'local state = { bucket = 1 }', 'state.refund(state)'],
      [],
    ],
    [
      'an element of what only has the name',
      ['local bucket = require "bucket"', 'local state = { bucket = {} }', 'state.bucket[1] = 2'],
      [],
    ],
    [
      'a name that only the run knows',
      ['local bucket = require "bucket"', 'local name = ARGV[1] -- which', 'bucket[name]()'],
      ['rate', 'charge', 'refund', 'rest'],
    ],
  ])('is there for scripts that can reach it: %s', (_, body, left) => {
    expect(functionsLeft(...body)).toEqual(left)
  })

  it('leaves the numbers of the lines as they were', () => {
    script('ask', '#!lua', '-- Asks.', 'local bucket = require "bucket"', 'return bucket.rest({})')

    const { source, origins } = onlyScript(build())

    const line = source.split('\n').indexOf('function bucket.rest(state)') + 1
    expect(origins[0]).toEqual({ line: 4, file: 'lua/bucket.lua', fileLine: 1 })
    expect(line - 4 + 1).toBe(14)
  })

  it('has its place in the table from the start', () => {
    script('ask', '#!lua', '-- Asks.', 'local bucket = require "bucket"', 'return bucket.rest({})')

    expect(onlyScript(build()).source).toContain('\nlocal bucket = { refund = nil, rest = nil }\n')
  })

  it('is not cut where it only seems to end', () => {
    luaModule(
      'bad',
      '-- Bad.',
      'local bad = {}',
      'function bad.one() return 1 end',
      'function bad.two()',
      'end',
      'return bad',
    )

    expect(problems()).toEqual([expect.stringContaining('lua/bad.lua:3: a function at the top of a module ends with')])
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
      'scripts/bad.lua:3: unknown module "buckt"; there are: none',
    ],
    ['a late require', ['#!lua', '-- Doc.', 'call(require "x")'], 'scripts/bad.lua:3: require is written as'],
  ])('%s', (_, lines, message) => {
    script('bad', ...lines)

    expect(problems()).toEqual([expect.stringContaining(message)])
  })

  it('a function that the module does not have', () => {
    luaModule('bucket', '-- A bucket.', 'local bucket = {}', 'function bucket.charge() end', 'return bucket')
    luaModule('limits', 'local bucket = require "bucket"', 'local x = bucket.refund', 'return {}')
    script('ask', '#!lua', '-- Asks.', 'local b = require "bucket"', 'return b.charge() + b.chrage()')

    expect(problems()).toEqual([
      'lua/limits.lua:2: there is no bucket.refund',
      'scripts/ask.lua:4: there is no b.chrage',
    ])
  })

  it('a circle of modules', () => {
    luaModule('a', 'local b = require "b"', 'return {}')
    luaModule('b', 'local a = require "a"', 'return {}')
    script('ask', '#!lua', '-- Asks.', 'local a = require "a"', 'return a')

    expect(problems()).toEqual(['lua/a.lua:1: modules require each other in a circle: ask → a → b → a'])
  })

  it('a module that returns nothing, or looks at positions', () => {
    luaModule('a', 'local x = ARGV[1]')

    expect(problems()).toEqual([
      expect.stringContaining('lua/a.lua:1: ARGV outside the head'),
      expect.stringContaining('lua/a.lua:1: a module ends with `return`'),
    ])
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
