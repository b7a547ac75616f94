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

const nestPackages = [
  '@nestjs/common',
  '@nestjs/core',
  '@nestjs/platform-express',
  '@nestjs/terminus',
  '@nestjs/testing',
  'reflect-metadata',
  'rxjs',
]

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
  constructor(built: string, nest: Nest, kind: ModuleKind) {
    // A copy: what it imports must be found from here, and Node looks where a link leads.
    cpSync(built, join(this.folder, 'node_modules/sluice'), { recursive: true })
    const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> }
    for (const name of [...Object.keys(dependencies), '@types/node']) this.#link(name, root)
    const from = nest === 'nest-11' ? nest11Folder : root
    for (const name of nestPackages) this.#link(name, from)
    cpSync(join(root, 'examples/nestjs/src'), join(this.folder, 'src'), { recursive: true })
    cpSync(join(root, 'examples/nestjs/tsconfig.json'), join(this.folder, 'tsconfig.json'))
    writeFileSync(join(this.folder, 'package.json'), JSON.stringify({ type: kind }))
  }

  /** What the compiler says; nothing when it is content. */
  async compile(): Promise<string> {
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
