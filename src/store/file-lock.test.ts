import { spawnSync } from 'node:child_process'
import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { FileLock } from './file-lock.ts'

let folder: string
let file: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-lock-'))
  file = join(folder, 'lock')
})

afterEach(() => rm(folder, { recursive: true }))

it('lets one in at a time', async () => {
  let inside = 0
  let most = 0

  await Promise.all(
    Array.from({ length: 8 }, async () => {
      const lock = await FileLock.acquire(file)
      most = Math.max(most, ++inside)
      await new Promise<void>((resolve) => setImmediate(resolve))
      inside--
      await lock.release()
    }),
  )

  expect(most).toBe(1)
  expect(await readdir(folder)).toEqual([])
})

it('is taken from a process that has ended', async () => {
  const { pid } = spawnSync('true')
  await writeFile(file, JSON.stringify({ token: 'gone', pid, host: hostname() }))

  const lock = await FileLock.acquire(file)

  await lock.assertHeld()
  await lock.release()
  expect(await readdir(folder)).toEqual([])
})

it('is taken from a process that holds it for too long, which then knows', async () => {
  const slow = await FileLock.acquire(file)
  const longAgo = new Date(Date.now() - 60_000)
  await utimes(file, longAgo, longAgo)

  const lock = await FileLock.acquire(file)

  const lost = slow.assertHeld()
  await expect(lost).rejects.toThrow('was taken over by another process')
  await expect(lost).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
  await slow.release()
  await lock.assertHeld()
  await lock.release()
})

it('is one among many that find it stale', async () => {
  const { pid } = spawnSync('true')
  await writeFile(file, JSON.stringify({ token: 'gone', pid, host: hostname() }))
  let inside = 0
  let most = 0

  await Promise.all(
    Array.from({ length: 8 }, async () => {
      const lock = await FileLock.acquire(file)
      most = Math.max(most, ++inside)
      await new Promise<void>((resolve) => setImmediate(resolve))
      inside--
      await lock.release()
    }),
  )

  expect(most).toBe(1)
})
