import { library } from '../../src/store/scripts.generated.ts'
import { replaceLibrary } from '../support/replace-library.ts'
import type { LuaMutant } from './lua-mutants.ts'

const original = library.source

/** The mutants that change nothing: Lua was rewritten, and their line is in no script any more. */
export function withoutLine(mutants: readonly LuaMutant[]): LuaMutant[] {
  return mutants.filter(({ line }) => !original.includes(whole(line)))
}

/** From now on this process runs the scripts with one line changed, wherever it stands. */
export function breakScripts({ line, becomes }: LuaMutant): void {
  replaceLibrary(original.replaceAll(whole(line), () => whole(becomes)))
}

/** Built scripts have no indentation. */
function whole(line: string): string {
  return `\n${line}\n`
}
