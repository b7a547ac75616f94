import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { nest11Folder } from '../../scripts/nest-11.mjs'
import { read, root } from '../docs/markdown.ts'

const execute = promisify(execFile)
const compiler = join(root, 'node_modules/typescript/bin/tsc')

export type Nest = 'nest-11' | 'nest-12'
export type ModuleKind = 'module' | 'commonjs'

const nestPackages = ['@nestjs/common', '@nestjs/core', '@nestjs/platform-express', 'reflect-metadata', 'rxjs']
/** Only beside NestJS 11: they are not among the packages of the repository. */
const nest11Packages = ['@nestjs/terminus', '@nestjs/testing']

/** Its files in TypeScript, by their path in the example. */
export function exampleFiles(): string[] {
  return readdirSync(join(root, 'examples/nestjs/src'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => `src/${path}`)
    .sort()
}

/** The package as a user has it, types included; what is wrong with those, the checks say. */
export async function buildPackage(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-built-'))
  const args = [compiler, '-p', join(root, 'tsconfig.build.json'), '--noCheck', '--outDir', join(folder, 'dist')]
  await execute(process.execPath, args)
  cpSync(join(root, 'package.json'), join(folder, 'package.json'))
  return folder
}

/** examples/nestjs as a project of its own, with one version of NestJS, of ES modules or of CommonJS. */
export class ExampleProject {
  readonly folder = mkdtempSync(join(tmpdir(), 'sluice-nestjs-'))
  readonly #nest: Nest

  constructor(built: string, nest: Nest, kind: ModuleKind) {
    this.#nest = nest
    // A copy: what it imports must be found from here, and Node looks where a link leads.
    cpSync(built, join(this.folder, 'node_modules/sluice'), { recursive: true })
    const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> }
    for (const name of [...Object.keys(dependencies), '@types/node']) this.#link(name, root)
    const from = nest === 'nest-11' ? nest11Folder : root
    for (const name of nest === 'nest-11' ? [...nestPackages, ...nest11Packages] : nestPackages) this.#link(name, from)
    cpSync(join(root, 'examples/nestjs/src'), join(this.folder, 'src'), { recursive: true })
    cpSync(join(root, 'examples/nestjs/tsconfig.json'), join(this.folder, 'tsconfig.json'))
    writeFileSync(join(this.folder, 'package.json'), JSON.stringify({ type: kind }))
  }

  /** What the compiler says; nothing when it is content. */
  async compile(): Promise<string> {
    if (this.#nest === 'nest-12') {
      for (const file of ['terminus.controller.ts', 'promotions/promotions.test.ts'])
        rmSync(join(this.folder, 'src', file))
    }
    return execute(process.execPath, [compiler], { cwd: this.folder }).then(
      () => '',
      (error: { stdout: string }) => error.stdout,
    )
  }

  /** What another project of the same kind of modules was compiled to. */
  takeCompiled(other: ExampleProject): void {
    cpSync(join(other.folder, 'dist'), join(this.folder, 'dist'), { recursive: true })
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }

  #link(name: string, from: string): void {
    const place = join(this.folder, 'node_modules', name)
    mkdirSync(dirname(place), { recursive: true })
    symlinkSync(join(from, 'node_modules', name), place)
  }
}
