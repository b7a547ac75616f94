import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type JsonLine, readJsonLines } from './ndjson.ts'

function fileOf(content: string | Uint8Array): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-ndjson-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'jobs.ndjson')
  writeFileSync(path, content)
  return path
}

async function read(content: string | Uint8Array): Promise<JsonLine[]> {
  const lines = []
  for await (const line of readJsonLines(fileOf(content))) lines.push(line)
  return lines
}

describe('a file of JSON lines', () => {
  it('is read line by line, with the numbers an editor shows', async () => {
    expect(await read('{"a":1}\n\n  \r\n[2]\r\n"three"')).toEqual([
      { line: 1, value: { a: 1 } },
      { line: 4, value: [2] },
      { line: 5, value: 'three' },
    ])
  })

  it('may start with a byte order mark', async () => {
    expect(await read('\uFEFF{"a":1}\n')).toEqual([{ line: 1, value: { a: 1 } }])
  })

  it('keeps letters that lie on the border of two chunks', async () => {
    const text = `"${'ü'.repeat(100_000)}"`

    expect((await read(`${text}\n`))[0]?.value).toBe('ü'.repeat(100_000))
  })

  it('is refused with the line that is not JSON', async () => {
    await expect(read('{"a":1}\n{"b":\n')).rejects.toThrow(/jobs\.ndjson:2: is not JSON .*one JSON document a line/)
  })

  it('is refused when it is not UTF-8', async () => {
    await expect(read(Uint8Array.of(0x22, 0xff, 0x22, 0x0a))).rejects.toThrow(/is not UTF-8/)
  })

  it('is refused when it is not there, or a folder', async () => {
    const readAll = (path: string) => readJsonLines(path).next()

    await expect(readAll('/nowhere/jobs.ndjson')).rejects.toThrow('/nowhere/jobs.ndjson: there is no such file')
    await expect(readAll(tmpdir())).rejects.toThrow('is a folder; give a file of JSON lines')
  })
})
