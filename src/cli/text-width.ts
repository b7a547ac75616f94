import { createRequire } from 'node:module'
import { stripVTControlCharacters } from 'node:util'

// A column each: ASCII, the letters of Western Europe, and what tables and bars are drawn with.
const NARROW = /^[ -~¡-¬®-ÿ–…≥█░]*$/

const require = createRequire(import.meta.url)

/** How many columns a terminal gives this text; colours take none. */
export function textWidth(text: string): number {
  const plain = stripVTControlCharacters(text)
  return NARROW.test(plain) ? plain.length : widthOfAny(plain)
}

/** Loaded when it is needed: its tables take longer than all the rest of a short command. */
function widthOfAny(text: string): number {
  const { default: stringWidth } = require('string-width') as typeof import('string-width')
  return stringWidth(text)
}

/** As much of a text as fits into so many columns, with a mark where it was cut. */
export function cutToWidth(text: string, width: number): string {
  if (textWidth(text) <= width) return text
  let cut = ''
  let used = 0
  // Made when it is needed: it takes as long as the rest of a short command.
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    used += textWidth(segment)
    if (used > width - 1) break
    cut += segment
  }
  return width < 1 ? '' : `${cut}…`
}
