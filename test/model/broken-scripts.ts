import * as built from '../../src/store/scripts.generated.ts'
import { replaceScript } from '../support/replace-script.ts'
import type { LuaMutant } from './lua-mutants.ts'

const scripts = Object.values(built)
const originals = scripts.map(({ source }) => source)

/** The mutants that change nothing: Lua was rewritten, and their line is in no script any more. */
export function withoutLine(mutants: readonly LuaMutant[]): LuaMutant[] {
  return mutants.filter(({ line }) => !originals.some((source) => source.includes(whole(line))))
}

/** From now on this process runs the scripts with one line changed, wherever it stands. */
export function breakScripts({ line, becomes }: LuaMutant): void {
  mendScripts()
  for (const script of scripts) {
    if (!script.source.includes(whole(line))) continue
    replaceScript(
      script,
      script.source.replaceAll(whole(line), () => whole(becomes)),
    )
  }
}

function mendScripts(): void {
  for (const [at, script] of scripts.entries()) replaceScript(script, originals[at] as string)
}

/** Built scripts have no indentation. */
function whole(line: string): string {
  return `\n${line}\n`
}
