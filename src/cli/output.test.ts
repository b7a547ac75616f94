import { describe, expect, it } from 'vitest'
import { Output, table } from './output.ts'

function output({ isJson = false, isTTY = false, environment = {} as NodeJS.ProcessEnv }) {
  const written = { data: '', talk: '' }
  const made = new Output({
    isJson,
    dataStream: { isTTY, write: (text: string) => (written.data += text) },
    talkStream: { isTTY, write: (text: string) => (written.talk += text) },
    environment,
  })
  return { output: made, written }
}

describe('output', () => {
  it('keeps data and talk apart', () => {
    const { output: made, written } = output({})

    made.talk('working')
    made.data({ done: 1 }, () => 'one is done')

    expect(written).toEqual({ data: 'one is done\n', talk: 'working\n' })
  })

  it('is one JSON document a line with --json', () => {
    const { output: made, written } = output({ isJson: true })

    made.data({ done: 1 }, () => 'one is done')

    expect(written.data).toBe('{"done":1}\n')
  })

  it.each([
    { what: 'on a terminal', isTTY: true, environment: {}, isColored: true },
    { what: 'elsewhere', isTTY: false, environment: {}, isColored: false },
    { what: 'with NO_COLOR', isTTY: true, environment: { NO_COLOR: '1' }, isColored: false },
    { what: 'with NO_COLOR that is empty', isTTY: true, environment: { NO_COLOR: '' }, isColored: true },
    { what: 'with FORCE_COLOR', isTTY: false, environment: { FORCE_COLOR: '1' }, isColored: true },
    { what: 'on a dumb terminal', isTTY: true, environment: { TERM: 'dumb' }, isColored: false },
  ])('has colours $what: $isColored', ({ isTTY, environment, isColored }) => {
    const { output: made } = output({ isTTY, environment })

    expect(made.style('green', 'ok') !== 'ok').toBe(isColored)
  })
})

describe('text of others', () => {
  const nasty = 'x\x1b[2J\x9b2Jy'

  it('moves no cursor, and leaves the colours of the command as they are', () => {
    const { output: made, written } = output({ isTTY: true })

    made.talk(`${made.style('red', nasty, 'talk')} ${nasty}`)
    made.data({}, () => `${made.style('green', 'ok')} ${nasty}\n${nasty}`)

    expect(written.talk).toBe('\x1b[31mx·[2J·2Jy\x1b[39m x·[2J·2Jy\n')
    expect(written.data).toBe('\x1b[32mok\x1b[39m x·[2J·2Jy\nx·[2J·2Jy\n')
  })

  it('is as it was for programs', () => {
    const { output: made, written } = output({ isJson: true })

    made.json({ nasty })

    expect(JSON.parse(written.data)).toEqual({ nasty })
  })

  it('does not break a table', () => {
    expect(table(['error'], [['a\nb\x1b[31m']])).toBe('error\na·b·[31m')
  })
})

describe('a table', () => {
  it('has columns wide enough for what is in them, and numbers to the right', () => {
    const text = table(
      ['tenant', 'waiting', 'parked by'],
      [
        ['acme', 1_234_567, undefined],
        ['顧客', 5, 'queue'],
      ],
    )

    expect(text).toBe(['tenant    waiting  parked by', 'acme    1,234,567  –', '顧客            5  queue'].join('\n'))
  })
})
