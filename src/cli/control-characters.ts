/**
 * Names and messages of others may hold anything. What moves the cursor, clears the screen or types for its reader must not
 * reach a terminal: it is shown as a dot.
 */

const SHOWN = '·'

/** Of what is one line: a cell of a table, a name. */
export function withoutControls(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, SHOWN)
}

/** Of what may be several lines. */
export function linesWithoutControls(text: string): string {
  return text.replaceAll(/(?![\n\t])\p{Cc}/gu, SHOWN)
}

// Colours as `Output.style` has them, each with its end, and the end of all that a line has which was cut.
const STYLED =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: an escape sequence starts with one.
  /(\x1b\[(?:[127]|3[1236])m)([^\x1b]*)(\x1b\[(?:0|22|27|39)m)|\x1b\[0m|(?![\n\t])\p{Cc}/gu

/** The same of lines that have colours of ours. */
export function coloredWithoutControls(lines: string): string {
  return lines.replaceAll(STYLED, (found, start?: string, text = '', end = '') => {
    if (start !== undefined) return start + linesWithoutControls(text) + end
    return found === '\x1b[0m' ? found : SHOWN
  })
}
