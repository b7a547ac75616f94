/**
 * `redis: 'embedded'`: a private redis-server of this machine, on a unix socket, shared by all processes that name
 * the same data folder. The first that finds nobody listening starts it; a supervisor (below) ends it when its last
 * user is gone. Files of the data folder:
 *
 *   appendonlydir/   the data
 *   server.json      which server runs or ran last: its id, its start and its socket
 *   clean            the start that ended cleanly; a stop that is not recorded here was a crash
 *   starting         held by the process that starts the server
 *   redis.log, redis.pid, redis.sock
 */
import { execFileSync, spawn } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { chmod, mkdir, readFile, realpath, rename, stat, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { EmbeddedRedisMissingError, StoreUnavailableError } from '../errors.ts'
import { FileLock } from './file-lock.ts'
import { installCommand } from './install-command.ts'

export interface EmbeddedOptions {
  /** The folder of the server; made when it is not there. */
  readonly dataDir: string
  /**
   * How often the supervisor asks whether anyone is connected; after three times nobody it stops the server.
   * @default 10_000
   */
  readonly supervisorPeriodMs?: number
  /**
   * Folders to look for redis-server in.
   * @default PATH, and where package managers put it
   */
  readonly searchPath?: readonly string[]
}

export interface EmbeddedServer {
  readonly socketPath: string
  /**
   * Identity of the data's present life: it survives a clean stop, which loses nothing, and changes when the server
   * ended in any other way. Read it after connecting.
   */
  serverId(): Promise<string>
}

interface ServerRecord {
  readonly id: string
  /** Names one start, so that a clean end can be told from that of an earlier start. */
  readonly start: string
  readonly socketPath: string
}

const SUPERVISOR_PERIOD_MS = 10_000
const START_TIMEOUT_MS = 10_000
const ASK_EVERY_MS = 20
const STOP_TIMEOUT_MS = 10_000
const NOTE_TIMEOUT_MS = 1_000
// The kernel's limit is 108 bytes on Linux and 104 on macOS, the terminating zero included.
const LONGEST_SOCKET_PATH_BYTES = 100

/**
 * Runs redis-server as its child and waits for its end, so that it knows how it ended: 0 is a clean stop, with all
 * data on disk. Meanwhile it asks every period who is connected: one line is redis-cli itself, and no line means that
 * there was no answer, which is no reason to stop; that the folder is gone is one: nobody can come any more. It belongs
 * to no terminal and no process group of a user, so nothing that ends its users ends it.
 */
const SUPERVISOR = `
trap '' HUP INT
server=$1 cli=$2 folder=$3 socket=$4 start=$5 period=$6
cd "$folder" || exit 1
"$server" --port 0 --unixsocket "$socket" --unixsocketperm 700 --dir "$folder" \\
  --appendonly yes --appendfsync everysec --save '' --maxmemory-policy noeviction \\
  --daemonize no --pidfile "$folder/redis.pid" --logfile "$folder/redis.log" &
pid=$!
trap 'kill "$pid"' TERM
(
  empty=0
  while sleep "$period"; do
    clients=$("$cli" -s "$socket" CLIENT LIST 2>/dev/null | grep -c '^id=')
    if [ "$clients" -eq 1 ] || [ ! -d "$folder" ]; then empty=$((empty + 1)); else empty=0; fi
    if [ "$empty" -ge 3 ]; then kill "$pid"; fi
  done
) &
loop=$!
while :; do
  wait "$pid"
  code=$?
  kill -0 "$pid" 2>/dev/null || break
done
kill "$loop" 2>/dev/null
if [ "$code" -eq 0 ]; then
  printf %s "$start" >clean.new && mv clean.new clean
fi
`

/** Finds the server of the data folder, or starts it. */
export async function ensureEmbeddedServer(options: EmbeddedOptions): Promise<EmbeddedServer> {
  await mkdir(options.dataDir, { recursive: true, mode: 0o700 })
  const folder = await realpath(resolve(options.dataDir))
  const running = await readRecord(folder)
  const socketPath =
    running && (await isListening(running.socketPath)) ? running.socketPath : await startOnce(folder, options)
  return {
    socketPath,
    serverId: async () => {
      const record = await readRecord(folder)
      if (!record) throw unavailable(`${recordFile(folder)} is gone`)
      return record.id
    },
  }
}

/** Of all processes that come here at once one starts the server, the others find it started. */
async function startOnce(folder: string, options: EmbeddedOptions): Promise<string> {
  const binaries = findBinaries(options.searchPath ?? defaultSearchPath())
  const lock = await FileLock.acquire(join(folder, 'starting'))
  try {
    const running = await readRecord(folder)
    if (running && (await isListening(running.socketPath))) return running.socketPath
    // A server that runs but cannot be reached, because something removed its socket, serves nobody and still holds
    // the data: two servers on one append-only file would destroy it.
    await stopEmbeddedServer({ dataDir: folder })
    // A lock that was taken away while this process stood still belongs to somebody who starts the server now.
    await lock.assertHeld()
    return await start(folder, binaries, options.supervisorPeriodMs ?? SUPERVISOR_PERIOD_MS)
  } finally {
    await lock.release()
  }
}

async function start(folder: string, binaries: Binaries, periodMs: number): Promise<string> {
  const last = await readRecord(folder)
  const endedCleanly = last !== undefined && (await hasEndedCleanly(folder, last))
  const record: ServerRecord = {
    id: endedCleanly ? last.id : randomUUID(),
    start: randomUUID(),
    socketPath: await chooseSocketPath(folder),
  }
  await writeWhole(join(folder, '.gitignore'), '*\n')
  await writeWhole(recordFile(folder), `${JSON.stringify(record)}\n`)
  const period = String(periodMs / 1000)
  const args = [binaries.server, binaries.cli, folder, record.socketPath, record.start, period]
  const supervisor = spawn('/bin/sh', ['-c', SUPERVISOR, 'sluice-embedded', ...args], {
    detached: true,
    stdio: 'ignore',
  })
  supervisor.unref()
  let end: string | undefined
  supervisor.once('error', (error) => {
    end = error.message
  })
  supervisor.once('exit', () => {
    end = 'redis-server ended at once'
  })
  const isUp = await until(async () => end !== undefined || (await isListening(record.socketPath)), START_TIMEOUT_MS)
  if (!isUp || end !== undefined) {
    const log = join(folder, 'redis.log')
    throw unavailable(`the embedded server did not start (${end ?? `waited ${START_TIMEOUT_MS} ms`}); see ${log}`)
  }
  return record.socketPath
}

/** Whether somebody accepts connections there. A server that hangs does; only its absence lets another one start. */
function isListening(socketPath: string): Promise<boolean> {
  return new Promise((answer, reject) => {
    const socket = connect(socketPath)
    socket.once('connect', () => {
      socket.destroy()
      answer(true)
    })
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED') answer(false)
      // The line of those who want to connect is full: somebody is there.
      else if (error.code === 'EAGAIN') answer(true)
      else reject(unavailable(error.message))
    })
  })
}

/**
 * Stops the server of a data folder, if there is one, and waits for its end. Its data is on disk then, and its
 * identity stays. For tests and tools: without users it stops by itself.
 */
export async function stopEmbeddedServer({ dataDir }: { dataDir: string }): Promise<void> {
  const folder = resolve(dataDir)
  const record = await readRecord(folder)
  if (!record) return
  const pid = Number(await readText(join(folder, 'redis.pid')))
  if (!(pid > 0) || !isServerAt(pid, record.socketPath)) return
  process.kill(pid, 'SIGTERM')
  const isGone = await until(() => !isServerAt(pid, record.socketPath), STOP_TIMEOUT_MS)
  if (!isGone) throw unavailable(`redis-server (process ${pid}) does not end`)
  await hasEndedCleanly(folder, record)
}

/**
 * A clean end takes the file with the process number away; the supervisor notes the end a moment later, when it has
 * seen how the process ended.
 */
async function hasEndedCleanly(folder: string, record: ServerRecord): Promise<boolean> {
  if ((await readText(join(folder, 'redis.pid'))) !== undefined) return false
  return until(async () => (await readText(join(folder, 'clean'))) === record.start, NOTE_TIMEOUT_MS)
}

/** The number in the file may be that of another process by now: a server of ours has its socket in its title. */
function isServerAt(pid: number, socketPath: string): boolean {
  try {
    process.kill(pid, 0)
    const title = existsSync('/proc/self/cmdline')
      ? readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      : execFileSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' })
    return title.includes(socketPath)
  } catch {
    return false
  }
}

async function until(isTrue: () => boolean | Promise<boolean>, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs
  while (!(await isTrue())) {
    if (performance.now() > deadline) return false
    await delay(ASK_EVERY_MS)
  }
  return true
}

interface Binaries {
  readonly server: string
  readonly cli: string
}

function defaultSearchPath(): string[] {
  const usual = ['/usr/local/bin', '/opt/homebrew/bin', '/usr/bin', '/usr/sbin']
  return [...(process.env.PATH ?? '').split(delimiter), ...usual]
}

function findBinaries(searchPath: readonly string[]): Binaries {
  for (const [serverName, cliName] of [
    ['redis-server', 'redis-cli'],
    ['valkey-server', 'valkey-cli'],
  ] as const) {
    const server = findExecutable(serverName, searchPath)
    const cli = findExecutable(cliName, searchPath)
    if (server && cli) return { server, cli }
  }
  throw new EmbeddedRedisMissingError({ binary: 'redis-server', install: installCommand() })
}

function findExecutable(name: string, searchPath: readonly string[]): string | undefined {
  return searchPath
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, name))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK)
        return true
      } catch {
        return false
      }
    })
}

async function chooseSocketPath(folder: string): Promise<string> {
  const beside = join(folder, 'redis.sock')
  if (Buffer.byteLength(beside) <= LONGEST_SOCKET_PATH_BYTES) return beside
  const user = process.getuid?.() ?? 0
  const sockets = join(tmpdir(), `sluice-${user}`)
  await mkdir(sockets, { recursive: true, mode: 0o700 })
  // The folder for temporary files is everybody's: a socket in a folder of somebody else would be theirs.
  const owner = await stat(sockets)
  if (owner.uid !== user) throw unavailable(`${sockets} belongs to another user; choose a shorter dataDir`)
  await chmod(sockets, 0o700)
  return join(sockets, `${createHash('sha256').update(folder).digest('hex').slice(0, 16)}.sock`)
}

function recordFile(folder: string): string {
  return join(folder, 'server.json')
}

async function readRecord(folder: string): Promise<ServerRecord | undefined> {
  const text = await readText(recordFile(folder))
  if (text === undefined) return undefined
  try {
    return JSON.parse(text) as ServerRecord
  } catch {
    // Torn by a crash of the machine: as if nobody had been here, which only makes the next start a restart.
    return undefined
  }
}

async function readText(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Readers see the old text or the new one, nothing between. */
async function writeWhole(file: string, text: string): Promise<void> {
  const draft = `${file}.${process.pid}.new`
  await writeFile(draft, text, { mode: 0o600 })
  await rename(draft, file)
}

function unavailable(reason: string): StoreUnavailableError {
  return new StoreUnavailableError({ reason, outcome: 'not-sent' })
}
