import stringWidth from 'string-width'
import { describe, expect, it } from 'vitest'
import { textWidth } from './text-width.ts'

describe('the width of a text', () => {
  it.each([
    '',
    'calls: 5/10',
    'Zoë – ½ ÿ',
    '░█ 50 %…',
    '≥ 5 s',
    '\x1b[36m██\x1b[39m░',
    '日本',
    'e\u0301',
    '👩‍👩‍👧',
    'a\u00adb',
  ])('is that of string-width for %j', (text) => {
    expect(textWidth(text)).toBe(stringWidth(text))
  })

  it('is that of string-width for every single character that is counted without it', () => {
    const narrow = Array.from({ length: 0x100 }, (_, code) => String.fromCharCode(code)).filter((sign) => sign >= ' ')

    expect(narrow.filter((sign) => textWidth(sign) !== stringWidth(sign))).toEqual([])
  })
})
