import { randomUUID } from 'node:crypto'
import { link, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { StoreUnavailableError } from '../errors.ts'

interface Holder {
  readonly token: string
  readonly pid: number
  readonly host: string
}

const ASK_EVERY_MS = 20
// Longer than anybody holds it: what a lock here guards takes ten seconds at most. A holder that is stopped for longer
// asks with `assertHeld` before the step that counts.
const STALE_AFTER_MS = 30_000

/**
 * A lock between processes of one machine, as a file. One left behind by a process that ended, or that nobody let go
 * for 30 s, is taken away.
 */
export class FileLock {
  readonly #file: string
  readonly #token: string

  private constructor(file: string, token: string) {
    this.#file = file
    this.#token = token
  }

  /** Waits for as long as others hold it. */
  static async acquire(file: string): Promise<FileLock> {
    const token = randomUUID()
    const draft = `${file}.${token}`
    const holder: Holder = { token, pid: process.pid, host: hostname() }
    await writeFile(draft, JSON.stringify(holder), { mode: 0o600 })
    try {
      // A link appears with its content, where a file that is created and then written would be empty for a moment.
      while (!(await tryLink(draft, file))) {
        if (!(await removeStale(file))) await delay(ASK_EVERY_MS)
      }
    } finally {
      await rm(draft, { force: true })
    }
    return new FileLock(file, token)
  }

  async assertHeld(): Promise<void> {
    if ((await readHolder(this.#file))?.token !== this.#token)
      throw new StoreUnavailableError({
        reason: `${this.#file} was taken over by another process`,
        outcome: 'not-sent',
      })
  }

  async release(): Promise<void> {
    if ((await readHolder(this.#file))?.token === this.#token) await rm(this.#file, { force: true })
  }
}

async function tryLink(draft: string, file: string): Promise<boolean> {
  try {
    await link(draft, file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/**
 * Moves a stale lock out of the way. Two processes may judge the same lock stale, and the slower one would then move
 * the new lock of the faster: so what was moved is looked at again, and put back when it is not what was judged.
 */
async function removeStale(file: string): Promise<boolean> {
  const judged = await readHolder(file)
  if (!judged || !(await isStale(file, judged))) return false
  const aside = `${file}.stale.${randomUUID()}`
  try {
    await rename(file, aside)
  } catch {
    return false
  }
  const moved = await readHolder(aside)
  if (moved && moved.token !== judged.token) await tryLink(aside, file)
  await rm(aside, { force: true })
  return true
}

async function isStale(file: string, holder: Holder): Promise<boolean> {
  if (holder.host === hostname() && !isAlive(holder.pid)) return true
  try {
    return Date.now() - (await stat(file)).mtimeMs > STALE_AFTER_MS
  } catch {
    return false
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

async function readHolder(file: string): Promise<Holder | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Holder
  } catch {
    return undefined
  }
}
