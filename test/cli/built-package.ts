import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from '../docs/markdown.ts'

/** Where `npm test` has left one for all: its processes inherit this. */
const SHARED = 'SLUICE_BUILT_PACKAGE'

/** The package as its users have it: from source, most of a short command is the compiler's. */
export class BuiltPackage {
  /** What `sluice` starts. */
  readonly main: string
  readonly #folder: string

  private constructor(folder: string) {
    this.#folder = folder
    this.main = join(folder, 'dist/cli/main.js')
  }

  /** The one of `npm test`; undefined for who runs a few files, and has the source. */
  static get shared(): BuiltPackage | undefined {
    const folder = process.env[SHARED]
    return folder === undefined ? undefined : new BuiltPackage(folder)
  }

  /** One of its own for a test that needs one, where there is none for all. */
  static take(): { main: string; remove: () => void } {
    if (BuiltPackage.shared) return { main: BuiltPackage.shared.main, remove: () => {} }
    const built = BuiltPackage.build()
    return { main: built.main, remove: () => built.remove() }
  }

  /** One for all processes that are started from now on. */
  static share(): BuiltPackage {
    const built = BuiltPackage.build()
    process.env[SHARED] = built.#folder
    return built
  }

  /** Types are the checks' matter. */
  static build(): BuiltPackage {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-built-'))
    copyFileSync(join(root, 'package.json'), join(folder, 'package.json'))
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    const options = ['--noCheck', '--declaration', 'false', '--outDir', join(folder, 'dist')]
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    execFileSync(process.execPath, [compiler, '-p', join(root, 'tsconfig.build.json'), ...options])
    return new BuiltPackage(folder)
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
