import { createHash } from 'node:crypto'
import * as built from '../../src/store/scripts.generated.ts'
import type { LuaMutant } from './lua-mutants.ts'

interface Script {
  readonly source: string
  readonly sha: string
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
    const source = script.source.replaceAll(whole(line), () => whole(becomes))
    change(script, { source, sha: createHash('sha1').update(source).digest('hex') })
  }
}

function mendScripts(): void {
  scripts.forEach((script, at) => {
    change(script, originals[at] as Script)
  })
}

/** The text of a built script is put together when somebody asks for it: it is a property that cannot be assigned to. */
function change(script: Script, { source, sha }: Script): void {
  Object.defineProperties(script, { source: { value: source, configurable: true }, sha: { value: sha } })
}

/** Built scripts have no indentation. */
function whole(line: string): string {
  return `\n${line}\n`
}
