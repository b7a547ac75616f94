import { createHash } from 'node:crypto'
import * as built from '../../src/store/scripts.generated.ts'
import type { LuaMutant } from './lua-mutants.ts'

interface Script {
  source: string
  sha: string
}

const scripts = Object.values(built) as Script[]
const originals = scripts.map(({ source, sha }) => ({ source, sha }))

/** The mutants that change nothing: Lua was rewritten, and their line is in no script any more. */
export function withoutLine(mutants: readonly LuaMutant[]): LuaMutant[] {
  return mutants.filter(({ line }) => !originals.some(({ source }) => source.includes(whole(line))))
}

/** From now on this process runs the scripts with one line changed, wherever it stands. */
export function breakScripts({ line, becomes }: LuaMutant): void {
  mendScripts()
  for (const script of scripts) {
    if (!script.source.includes(whole(line))) continue
    script.source = script.source.replaceAll(whole(line), () => whole(becomes))
    script.sha = createHash('sha1').update(script.source).digest('hex')
  }
}

function mendScripts(): void {
  scripts.forEach((script, at) => {
    Object.assign(script, originals[at])
  })
}

/** Built scripts have no indentation. */
function whole(line: string): string {
  return `\n${line}\n`
}
