import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** Relative imports, and modules that are started as processes of their own (`new URL('x.ts', import.meta.url)`). */
const REFERENCE = /(?:from |import |import\(|new URL\()'([^']+\.ts)'/g

/**
 * The files among those given that start a program, by themselves or through what they import: some file on the way
 * holds the program's name as a string. Lets tests that need an absent program be left out without asking each of
 * them to say so.
 */
export function filesNeeding(program: string, files: readonly string[]): string[] {
  return files.filter((file) => {
    const reached = new Set([resolve(file)])
    // A set iterates over what is added to it on the way.
    for (const next of reached) {
      if (!existsSync(next)) continue
      const text = readFileSync(next, 'utf8')
      if (text.includes(`'${program}'`)) return true
      for (const [, reference] of text.matchAll(REFERENCE)) reached.add(resolve(dirname(next), reference ?? ''))
    }
    return false
  })
}
