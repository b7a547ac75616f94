import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const execute = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))

interface Packed {
  filename: string
  files: readonly { path: string }[]
}

/** The package as a user has it in `node_modules`, in an empty project of its own. */
export interface InstalledPackage {
  /** Paths inside the tarball. */
  readonly files: readonly string[]
  readonly manifest: {
    readonly version: string
    readonly exports: Record<string, string | Record<string, string>>
    readonly dependencies: Record<string, string>
    readonly peerDependencies: Record<string, string>
    readonly scripts: Record<string, string>
  }
  /** Writes a file of the project that uses the package, runs it with Node and gives what it printed. */
  run(fileName: string, source: string): Promise<string>
  /** Compiles a file of that project with the strictest settings; gives what the compiler said, nothing when content. */
  compile(fileName: string, source: string): Promise<string>
  remove(): Promise<void>
}

/**
 * Packs as for publishing (which builds first) and unpacks into a project whose other packages are links to those of
 * this repository: what npm would do, without a registry.
 */
export async function installPackage(): Promise<InstalledPackage> {
  const project = await mkdtemp(join(tmpdir(), 'sluice-package-'))
  const home = join(project, 'node_modules', 'sluice')
  await mkdir(home, { recursive: true })

  const { stdout } = await execute('npm', ['pack', '--json', '--pack-destination', project], { cwd: root })
  const [packed] = JSON.parse(stdout.slice(stdout.search(/^\[/m))) as [Packed]
  await execute('tar', ['-xzf', join(project, packed.filename), '--strip-components=1', '-C', home])

  const manifest: InstalledPackage['manifest'] = JSON.parse(await readFile(join(home, 'package.json'), 'utf8'))
  const { dependencies, peerDependencies } = manifest
  for (const name of [...Object.keys({ ...dependencies, ...peerDependencies }), '@types/node']) {
    const place = join(project, 'node_modules', name)
    await mkdir(dirname(place), { recursive: true })
    await symlink(join(root, 'node_modules', name), place)
  }

  return {
    files: packed.files.map(({ path }) => path),
    manifest,
    async run(fileName, source) {
      await writeFile(join(project, fileName), source)
      const { stdout: printed } = await execute(process.execPath, [fileName], { cwd: project })
      return printed
    },
    async compile(fileName, source) {
      await writeFile(join(project, fileName), source)
      const settings = [
        '--noEmit',
        '--strict',
        '--exactOptionalPropertyTypes',
        '--module',
        'nodenext',
        '--types',
        'node',
      ]
      const compiler = join(root, 'node_modules', '.bin', 'tsc')
      return execute(compiler, [...settings, '--target', 'es2023', fileName], { cwd: project }).then(
        () => '',
        (error: { stdout: string }) => error.stdout,
      )
    },
    remove: () => rm(project, { recursive: true, force: true }),
  }
}
