import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, it } from 'vitest'
import { startRedis } from './redis-server.ts'

describe('startRedis', () => {
  it('gives a server that answers by TCP and by its socket, and leaves nothing when stopped', async () => {
    const server = await startRedis()
    const { pid, path } = server

    expect(await server.client().ping()).toBe('PONG')
    expect(server.url).toBe(`redis://127.0.0.1:${server.port}`)
    await server.stop()

    expect(isRunning(pid)).toBe(false)
    expect(existsSync(dirname(path))).toBe(false)
  })

  it('keeps data and address over a kill −9 and a restart when it is append-only', async () => {
    const server = await startRedis({ appendonly: true, config: { appendfsync: 'always' } })
    const { url, pid } = server
    await server.client().set('kept', 'yes')

    await server.kill('SIGKILL')
    await server.restart()

    expect(server.url).toBe(url)
    expect(server.pid).not.toBe(pid)
    expect(await server.client().get('kept')).toBe('yes')
    await server.stop()
  })

  it('refuses, as a one-node cluster, a script that touches keys of two slots', async () => {
    const server = await startRedis({ cluster: true })
    const redis = server.client()
    const script = "#!lua\nredis.call('SET', KEYS[1], 1) return redis.call('GET', ARGV[1])"

    expect(await redis.eval(script, 1, '{a}x', '{a}y')).toBeNull()
    await expect(redis.eval(script, 1, '{a}x', '{b}y')).rejects.toThrow(/do not hash to the same slot/)
    await server.stop()
  })

  it('says what the server said when it cannot start', async () => {
    await expect(startRedis({ config: { 'no-such-directive': 'yes' } })).rejects.toThrow(/no-such-directive/)
  })

  it('ends the server and removes its folder when the process that started it is killed −9', async () => {
    const program = `
      import { startRedis } from ${JSON.stringify(new URL('redis-server.ts', import.meta.url).href)}
      const { pid, path } = await startRedis()
      process.stdout.write(JSON.stringify({ pid, path }) + '\\n')
    `
    const owner = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', program])
    const [line] = (await once(createInterface({ input: owner.stdout }), 'line')) as [string]
    const { pid, path } = JSON.parse(line) as { pid: number; path: string }
    expect(isRunning(pid)).toBe(true)

    owner.kill('SIGKILL')

    await expect.poll(() => existsSync(dirname(path)), { timeout: 5_000 }).toBe(false)
    expect(isRunning(pid)).toBe(false)
  })
})

/** Linux only. A process that has ended and whose parent has not yet asked for its status counts as ended. */
function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
