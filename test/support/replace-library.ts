import { libraryNameOf } from '../../src/store/library.ts'
import * as built from '../../src/store/scripts.generated.ts'

const { library, ...scripts } = built

/** Gives the scripts of this process another text. */
export function replaceLibrary(source: string): void {
  const name = libraryNameOf(source)
  for (const script of Object.values(scripts)) {
    Object.assign(script, { calledAs: script.calledAs.replace(library.name, name) })
  }
  Object.assign(library, { source, name })
}
