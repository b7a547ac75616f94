import type { IncomingMessage } from 'node:http'
import { PassThrough, Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { NdjsonReader, textStream } from './ndjson.ts'
import type { Problem } from './problem.ts'

function readerOf(stream: Readable, options: { maxLineBytes?: number; idleMs?: number; signal?: AbortSignal } = {}) {
  const { maxLineBytes = 1_000, idleMs = 10_000, signal = new AbortController().signal } = options
  return new NdjsonReader(stream as IncomingMessage, { maxLineBytes, idleMs, signal })
}

async function read(pieces: readonly (string | Buffer)[], maxLineBytes = 1_000) {
  const reader = readerOf(Readable.from(pieces.map((piece) => Buffer.from(piece))), { maxLineBytes })
  const values: unknown[] = []
  for await (const value of reader.values()) values.push(value)
  if (reader.mistake === undefined) return { values, line: reader.line }
  const { kind, message, members } = reader.mistake as Problem
  return { values, problem: `${kind}: ${message}`, line: members.line }
}

describe('a body of NDJSON', () => {
  it('is read line by line, wherever the pieces end', async () => {
    const text = Buffer.from('{"a":"ä€😀"}\n\n{"b":[1,2]}\r\n{"c":{}}')
    const bytes = Array.from(text, (byte) => Buffer.from([byte]))

    for (const pieces of [[text], bytes]) {
      expect(await read(pieces)).toEqual({ values: [{ a: 'ä€😀' }, { b: [1, 2] }, { c: {} }], line: 4 })
    }
  })

  it('may be empty', async () => {
    expect(await read([])).toEqual({ values: [], line: 0 })
    expect(await read(['\n\n'])).toEqual({ values: [], line: 2 })
  })

  it.each([
    ['is not JSON', '{"a":1}\n{"a":\n{"a":3}\n', 'invalid-request: Line 2 is not JSON.'],
    ['is no object', '{"a":1}\n[]\n', 'invalid-request: Line 2 must be an object such as'],
    ['is null', '{"a":1}\nnull\n', 'invalid-request: Line 2 must be an object'],
    ['is too long', `{"a":1}\n{"a":"${'x'.repeat(1_000)}"}\n{}\n`, 'too-large: Line 2 is longer than 1000 bytes.'],
    ['never ends', `{"a":1}\n{"a":"${'x'.repeat(1_000)}`, 'too-large: Line 2 is longer than 1000 bytes.'],
    ['is too long in bytes', `{"a":1}\n{"a":"${'€'.repeat(400)}"}\n`, 'too-large: Line 2 is longer'],
  ])('is taken up to a line that %s, which is named', async (_, text, problem) => {
    const outcome = await read([text])

    expect(outcome.values).toEqual([{ a: 1 }])
    expect(outcome.problem).toContain(problem)
    expect(outcome.line).toBe(2)
  })

  it('is taken up to a line that is not UTF-8, which is named', async () => {
    const text = Buffer.concat([Buffer.from('{"a":1}\n{"b":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}\n{}\n')])

    expect(await read([text])).toMatchObject({ values: [{ a: 1 }], problem: 'invalid-request: Line 2 is not UTF-8.' })
  })

  it('ends a line that never ends before more than its bound is held', async () => {
    let given = 0
    async function* endless() {
      for (; given < 10_000; given++) yield Buffer.alloc(100, 'x')
    }
    const reader = readerOf(Readable.from(endless(), { highWaterMark: 1 }), { maxLineBytes: 1_000 })

    expect((await reader.values().next()).done).toBe(true)
    expect(String(reader.mistake)).toContain('Line 1 is longer than 1000 bytes')
    expect(given).toBeLessThan(20)
  })

  it('is given up when nothing comes for too long', async () => {
    const stream = new PassThrough()
    stream.write('{"a":1}\n')
    const reader = readerOf(stream, { idleMs: 30 })
    const values = reader.values()

    expect((await values.next()).value).toEqual({ a: 1 })
    expect((await values.next()).done).toBe(true)
    expect(String(reader.mistake)).toContain('Nothing of the body arrived for 30 ms')
    expect(stream.destroyed).toBe(false)
  })

  it('can be read away by others after a mistake', async () => {
    const stream = new PassThrough()
    const reader = readerOf(stream)
    stream.write('nonsense\n')

    await reader.values().next()
    stream.resume().end('{}\n'.repeat(100_000))

    await new Promise((resolve) => stream.once('end', resolve))
    expect(stream.readableLength).toBe(0)
  })

  it('is given up when the signal says so', async () => {
    const controller = new AbortController()
    const reader = readerOf(new PassThrough(), { signal: controller.signal })
    const next = reader.values().next()

    controller.abort(new Error('closing'))

    expect((await next).done).toBe(true)
    expect(reader.mistake).toEqual(new Error('closing'))
  })

  it('is read no faster than its values are taken', async () => {
    let given = 0
    async function* pieces() {
      for (; given < 1_000; given++) yield Buffer.from('{}\n')
    }
    const values = readerOf(Readable.from(pieces(), { highWaterMark: 1 })).values()

    for (let i = 0; i < 10; i++) await values.next()

    expect(given).toBeLessThan(20)
  })
})

describe('an answer of NDJSON', () => {
  it('has one line for each value', async () => {
    async function* values() {
      yield '{"a":"ä\\n"}'
      yield '[1]'
    }

    expect(await textStream(values()).toArray()).toEqual([Buffer.from('{"a":"ä\\n"}\n[1]\n')])
  })

  it('is made no faster than it is read', async () => {
    let made = 0
    async function* values() {
      for (;;) {
        made += 1
        yield 'x'.repeat(1_000)
      }
    }
    const stream = textStream(values())

    await stream.iterator().next()

    expect(made).toBeLessThan(100)
    stream.destroy()
  })
})
