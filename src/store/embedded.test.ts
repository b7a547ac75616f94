import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ensureEmbeddedServer, stopEmbeddedServer } from './embedded.ts'
import { openRedis, type Redis } from './redis.ts'

// Three of these without a user, and the server stops. Everything else waits for events.
const PERIOD_MS = 100

let root: string
let dataDir: string
const users: Redis[] = []
const children: ChildProcess[] = []

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'sluice-embedded-'))
  dataDir = join(root, 'data')
})

afterEach(async () => {
  for (const user of users.splice(0)) await user.close()
  for (const child of children.splice(0)) child.kill('SIGKILL')
  await stopEmbeddedServer({ dataDir })
  await rm(root, { recursive: true, force: true })
})

/** A user of the server in this process. */
async function use(): Promise<Redis> {
  await ensureEmbeddedServer({ dataDir, supervisorPeriodMs: PERIOD_MS })
  const redis = openRedis({ redis: 'embedded', dataDir })
  users.push(redis)
  await redis.ready()
  return redis
}

async function leave(redis: Redis): Promise<void> {
  users.splice(users.indexOf(redis), 1)
  await redis.close()
}

/** A user in a process of its own; resolves with the process number of the server it is connected to. */
async function useInChild(): Promise<{ child: ChildProcess; serverPid: number }> {
  const program = `
    import { ensureEmbeddedServer } from ${JSON.stringify(new URL('./embedded.ts', import.meta.url).href)}
    import { openRedis } from ${JSON.stringify(new URL('./redis.ts', import.meta.url).href)}
    await ensureEmbeddedServer({ dataDir: ${JSON.stringify(dataDir)}, supervisorPeriodMs: ${PERIOD_MS} })
    const redis = openRedis({ redis: 'embedded', dataDir: ${JSON.stringify(dataDir)} })
    const info = await redis.call('INFO', 'server')
    console.log(/process_id:(\\d+)/.exec(info)[1])
  `
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  const [line] = await Promise.race([
    new Promise<string[]>((resolve) =>
      createInterface({ input: child.stdout }).once('line', (text) => resolve([text])),
    ),
    new Promise<never>((_, reject) => child.once('exit', (code) => reject(new Error(`the child ended with ${code}`)))),
  ])
  return { child, serverPid: Number(line) }
}

async function pidOf(redis: Redis): Promise<number> {
  return Number(/process_id:(\d+)/.exec(String(await redis.call('INFO', 'server')))?.[1])
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** The process belongs to nobody here, so nothing but asking tells of its end. */
async function ended(pid: number): Promise<void> {
  const deadline = performance.now() + 20_000
  while (isRunning(pid)) {
    if (performance.now() > deadline) throw new Error(`process ${pid} still runs`)
    await delay(10)
  }
}

it('keeps what it is given: an append-only file, no eviction, no port', async () => {
  const redis = await use()

  const config = await redis.call('CONFIG', 'GET', 'appendonly', 'appendfsync', 'maxmemory-policy', 'port', 'save')

  expect(Object.fromEntries(pairs(config as string[]))).toEqual({
    appendonly: 'yes',
    appendfsync: 'everysec',
    'maxmemory-policy': 'noeviction',
    port: '0',
    save: '',
  })
})

describe('several processes', () => {
  it('that start at once share one server', async () => {
    const started = await Promise.all([useInChild(), useInChild(), useInChild()])

    expect(new Set(started.map(({ serverPid }) => serverPid)).size).toBe(1)
    expect(await pidOf(await use())).toBe(started[0]?.serverPid)
  })

  it('keep the server for as long as one of them is there', async () => {
    const staying = await use()
    const serverPid = await pidOf(staying)
    await leave(await use())

    await delay(PERIOD_MS * 6)

    expect(isRunning(serverPid)).toBe(true)
    expect(await pidOf(staying)).toBe(serverPid)
  })
})

describe('the last user', () => {
  it('is killed: the server ends by itself, and its data and identity are there again', async () => {
    const { child, serverPid } = await useInChild()
    const other = await use()
    const { serverId } = other
    await other.call('SET', 'kept', 'yes')
    await leave(other)

    child.kill('SIGKILL')
    await ended(serverPid)
    const redis = await use()

    expect(await redis.call('GET', 'kept')).toBe('yes')
    expect(redis.serverId).toBe(serverId)
    expect(await pidOf(redis)).not.toBe(serverPid)
  })

  it('leaves: nothing of it runs any more', async () => {
    const redis = await use()
    const serverPid = await pidOf(redis)

    await leave(redis)
    await ended(serverPid)

    expect(existsSync(join(dataDir, 'redis.sock'))).toBe(false)
  })
})

describe('a server that is killed', () => {
  it('is started again by its users, under another id', async () => {
    const redis = await use()
    const { serverId } = redis
    const reconnected = new Promise<string>((resolve) => redis.onReconnect(resolve))

    process.kill(await pidOf(redis), 'SIGKILL')

    expect(await reconnected).not.toBe(serverId)
    expect(await redis.call('PING')).toBe('PONG')
  })

  it('counts as a restart for users that come later, too', async () => {
    const redis = await use()
    const { serverId } = redis
    const serverPid = await pidOf(redis)
    await leave(redis)

    process.kill(serverPid, 'SIGKILL')
    await ended(serverPid)

    expect((await use()).serverId).not.toBe(serverId)
  })
})

it('a clean stop is no restart', async () => {
  const redis = await use()
  const { serverId } = redis
  await leave(redis)

  await stopEmbeddedServer({ dataDir })

  expect((await use()).serverId).toBe(serverId)
})

it('a server whose socket was removed is ended before another one opens its data', async () => {
  const redis = await use()
  await redis.call('SET', 'kept', 'yes')
  const serverPid = await pidOf(redis)
  await leave(redis)
  await rm(join(dataDir, 'redis.sock'))

  const again = await use()

  expect(isRunning(serverPid)).toBe(false)
  expect(await again.call('GET', 'kept')).toBe('yes')
})

it('a server whose folder was removed ends by itself', async () => {
  const user = await use()
  const serverPid = await pidOf(user)
  await leave(user)

  await rm(root, { recursive: true, force: true })

  await ended(serverPid)
})

it('a folder with a long name and spaces has its socket elsewhere', async () => {
  dataDir = join(root, 'a folder '.repeat(12).trim(), 'data')
  await mkdir(dataDir, { recursive: true })

  const redis = await use()

  expect(await redis.call('SET', 'a', 1)).toBe('OK')
  expect(existsSync(join(dataDir, 'redis.sock'))).toBe(false)
  expect(existsSync(join(dataDir, 'appendonlydir'))).toBe(true)
})

it('a missing redis-server is answered with how to install it', async () => {
  const call = ensureEmbeddedServer({ dataDir, searchPath: [root] })

  await expect(call).rejects.toMatchObject({
    code: 'SLUICE_EMBEDDED_REDIS_MISSING',
    message: expect.stringMatching(/^redis: 'embedded' needs redis-server, which was not found. Install it with: .+$/),
  })
})

function pairs(flat: readonly string[]): [string, string][] {
  return flat.flatMap((name, index): [string, string][] => (index % 2 === 0 ? [[name, flat[index + 1] ?? '']] : []))
}
