import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from '../docs/markdown.ts'

/** The package as its users have it, for what is measured in time: from source, half of a short command is the compiler's. */
export class BuiltPackage {
  /** What `sluice` starts. */
  readonly main: string
  readonly #folder: string

  private constructor(folder: string) {
    this.#folder = folder
    this.main = join(folder, 'dist/cli/main.js')
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
