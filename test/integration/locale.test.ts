import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { makeDictionaryLocale } from '../support/dictionary-locale.ts'
import { useEngine } from './engine.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-locale-'))

beforeAll(() => {
  for (const [name, value] of Object.entries(makeDictionaryLocale(folder))) vi.stubEnv(name, value)
})
const engine = useEngine()
beforeAll(() => {
  vi.unstubAllEnvs()
})
afterAll(() => rmSync(folder, { recursive: true }))

it('is the one the server compares texts by', async () => {
  const client = engine.server.client()

  const isBefore = await client.eval("return { 'a' < 'B' and 1 or 0, 'B' < 'a' and 1 or 0 }", 0)

  expect(isBefore).toEqual([1, 0])
})

it('loses none of the schedules that are due at one moment between two pages', async () => {
  const queue = engine.queue()
  const names = [...'aBcDeFgGhZz', 'a-c', 'aB', 'ab', 'g-1', 'g1', 'g_2', '10', '9', 'é']
  for (const name of names) await queue.schedules.set(name, { every: '1h', job: { type: 'REPORT' } })

  const seen: string[] = []
  let cursor: string | undefined
  do {
    const page = await queue.schedules.list({ limit: 3, ...(cursor === undefined ? {} : { cursor }) })
    seen.push(...page.schedules.map(({ name }) => name))
    cursor = page.cursor
  } while (cursor !== undefined)

  expect(seen.toSorted()).toEqual(names.toSorted())
})
