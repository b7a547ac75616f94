import { styleText } from 'node:util'
import { describe, expect, it } from 'vitest'
import { coloredWithoutControls, linesWithoutControls, withoutControls } from './control-characters.ts'

const nasty = 'a\x1b[2Jb\r\x07c\x7f\x9b2Jd'

describe('text of others', () => {
  it('moves no cursor, wherever it is shown', () => {
    const shown = 'a·[2Jb··c··2Jd'

    expect(withoutControls(nasty)).toBe(shown)
    expect(linesWithoutControls(nasty)).toBe(shown)
    expect(coloredWithoutControls(nasty)).toBe(shown)
  })

  it('is one line in a cell, and may be several elsewhere', () => {
    expect(withoutControls('a\nb\tc')).toBe('a·b·c')
    expect(linesWithoutControls('a\nb\tc')).toBe('a\nb\tc')
    expect(coloredWithoutControls('a\nb\tc')).toBe('a\nb\tc')
  })

  it('cannot leave a colour behind', () => {
    expect(coloredWithoutControls('a\x1b[31mb\x1b[8mc')).toBe('a·[31mb·[8mc')
  })
})

describe('colours of ours', () => {
  it.each(['bold', 'dim', 'inverse', 'red', 'green', 'yellow', 'cyan'] as const)('survive: %s', (style) => {
    const line = `before ${styleText(style, 'in it', { validateStream: false })} after`

    expect(coloredWithoutControls(line)).toBe(line)
  })

  it('survive beside what must not reach the terminal, and in a line that was cut', () => {
    expect(coloredWithoutControls('\x1b[31mfailed\x1b[39m \x1b[2Jx\n\x1b[36m██…\x1b[0m')).toBe(
      '\x1b[31mfailed\x1b[39m ·[2Jx\n\x1b[36m██…\x1b[0m',
    )
    expect(coloredWithoutControls('██…\x1b[0m')).toBe('██…\x1b[0m')
  })
})
