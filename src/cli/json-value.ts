import { CliError } from './cli-error.ts'

/**
 * JSON of the command line. What is wrong with it is said without all of it: it may be long, or hold secrets.
 * @param place - What it was given for: `--payload`.
 */
export function jsonIn(place: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const hint = /^\s*[{[]/.test(text) ? '' : '; a text needs its quotes: \'"hello"\''
    throw new CliError('usage', `${place} must be JSON: ${(error as Error).message}${hint}`)
  }
}
