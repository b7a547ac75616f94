import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { stopEmbeddedServer } from '../../src/store/embedded.ts'
import { type CliEnd, CliProcess, sluice } from './cli-process.ts'

/** A folder to start commands in, with some files. */
export function folderWith(files: Readonly<Record<string, string>> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-cli-'))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return folder
}

/** Ends the embedded server of a folder, and removes it. */
export async function removeFolder(folder: string): Promise<void> {
  await stopEmbeddedServer({ dataDir: join(folder, '.sluice') })
  rmSync(folder, { recursive: true, force: true })
}

/** `sluice serve` on a free port, as another terminal would have it. */
export class ServerProcess {
  readonly url: string
  readonly cli: CliProcess
  readonly #folder: string

  private constructor(cli: CliProcess, url: string, folder: string) {
    this.cli = cli
    this.url = url
    this.#folder = folder
  }

  static async start(folder: string, args: readonly string[] = []): Promise<ServerProcess> {
    const cli = new CliProcess(['serve', '--port', '0', ...args], { cwd: folder })
    const [, url = ''] = await cli.said(/described at (http:\S+)\/docs/)
    return new ServerProcess(cli, url, folder)
  }

  /** A command that talks to it. */
  sluice(args: readonly string[], options: { env?: Record<string, string>; input?: string } = {}): Promise<CliEnd> {
    return sluice(args, { cwd: this.#folder, ...options, env: { SLUICE_URL: this.url, ...options.env } })
  }

  /** The data of a command with --json: one document a line. */
  async data<Document>(args: readonly string[]): Promise<Document[]> {
    const { code, stdout, stderr } = await this.sluice([...args, '--json'])
    if (code !== 0) throw new Error(`sluice ${args.join(' ')} ended with ${code}: ${stderr}`)
    return stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Document)
  }

  /** Submits a job of type http.request, which no host may be called for: it dies, if there is a worker. Answers its id. */
  async submitJob(queue: string, job: object): Promise<string> {
    const reply = await fetch(`${this.url}/v1/queues/${queue}/jobs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ type: 'http.request', payload: { url: 'http://not-allowed.example' }, ...job }),
    })
    if (!reply.ok) throw new Error(`a job was answered with ${reply.status}: ${await reply.text()}`)
    return ((await reply.json()) as { id: string }).id
  }

  async stop(): Promise<CliEnd> {
    this.cli.signal('SIGTERM')
    return this.cli.ended()
  }
}

/** One server in a folder of its own, for all tests of a file. @param use - Is given it before the first of them. */
export function serveForAll(args: readonly string[], use: (server: ServerProcess) => void): void {
  let folder: string
  let server: ServerProcess | undefined
  beforeAll(async () => {
    folder = folderWith()
    server = await ServerProcess.start(folder, args)
    use(server)
  })
  afterAll(async () => {
    await server?.stop()
    await removeFolder(folder)
  })
}
