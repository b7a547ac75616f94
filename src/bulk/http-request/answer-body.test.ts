import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { readAnswerBody } from './answer-body.ts'

/** As the network delivers it: in pieces. */
function inPieces(bytes: Buffer, size = 1_000): Readable {
  const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
    bytes.subarray(index * size, (index + 1) * size),
  )
  return Readable.from(pieces)
}

const text = Buffer.from('All work and no play. '.repeat(200))
const read = (bytes: Buffer, contentEncoding?: string, maxBytes = 100_000) =>
  readAnswerBody(inPieces(bytes), { contentEncoding, maxBytes })

describe('a body', () => {
  it.each([
    ['no encoding', text, undefined],
    ['identity', text, 'identity'],
    ['gzip', gzipSync(text), 'gzip'],
    ['x-gzip', gzipSync(text), 'X-GZIP'],
    ['gzip in two members', Buffer.concat([gzipSync(text.subarray(0, 9)), gzipSync(text.subarray(9))]), 'gzip'],
    ['deflate', deflateSync(text), 'deflate'],
    ['deflate without its frame', deflateRawSync(text), 'deflate'],
    ['brotli', brotliCompressSync(text), 'br'],
    ['gzip inside brotli', brotliCompressSync(gzipSync(text)), 'gzip, br'],
    ['deflate inside gzip', gzipSync(deflateSync(text)), 'deflate,gzip'],
  ])('with %s is decoded, and counted before and after', async (_, bytes, contentEncoding) => {
    expect(await read(bytes, contentEncoding)).toEqual({
      bytes: text,
      isDecoded: true,
      isTruncated: false,
      wireBytes: bytes.length,
    })
  })

  it.each(['zstd', 'gzip, zstd', 'gzip, gzip, gzip, gzip', 'constructor'])('with %s is left as it is', async (name) => {
    const bytes = gzipSync(text)

    expect(await read(bytes, name)).toMatchObject({ bytes, isDecoded: false })
  })

  it.each(['gzip', 'deflate', 'br', undefined])('that is empty is empty, whatever its encoding (%s)', async (name) => {
    expect(await read(Buffer.alloc(0), name)).toMatchObject({
      bytes: Buffer.alloc(0),
      isTruncated: false,
      wireBytes: 0,
    })
  })

  it.each([
    ['gzip', gzipSync(text)],
    ['deflate', deflateSync(text)],
    ['br', brotliCompressSync(text)],
  ])('whose %s ends early is an error, not a shorter body', async (name, bytes) => {
    await expect(read(bytes.subarray(0, -5), name)).rejects.toThrow('unexpected end of file')
  })

  it('that is not what its encoding says is an error', async () => {
    await expect(read(text, 'gzip')).rejects.toThrow('incorrect header check')
  })

  it('whose source fails is an error', async () => {
    const source = Readable.from(
      (async function* () {
        yield gzipSync(text).subarray(0, 20)
        throw new Error('connection lost')
      })(),
    )

    await expect(readAnswerBody(source, { contentEncoding: 'gzip', maxBytes: 10 })).rejects.toThrow('connection lost')
  })
})

describe('the cap', () => {
  it.each([
    [undefined, text],
    ['gzip', gzipSync(text)],
  ])('lets a body through that fits exactly (%s)', async (name, bytes) => {
    expect(await read(bytes, name, text.length)).toMatchObject({ bytes: text, isTruncated: false })
  })

  it.each([
    [undefined, text],
    ['gzip', gzipSync(text)],
  ])('cuts a body that has a byte more (%s)', async (name, bytes) => {
    const body = await read(bytes, name, text.length - 1)

    expect(body).toMatchObject({ bytes: text.subarray(0, -1), isTruncated: true })
  })

  it('stops reading the source', async () => {
    const source = inPieces(randomBytes(10_000_000))

    const body = await readAnswerBody(source, { contentEncoding: undefined, maxBytes: 5_000 })

    expect(body).toMatchObject({ isTruncated: true, wireBytes: 6_000 })
    expect(source.destroyed).toBe(true)
  })

  it.each([
    ['gzip', gzipSync(Buffer.alloc(100_000_000))],
    ['gzip, gzip', gzipSync(gzipSync(Buffer.alloc(100_000_000)))],
    ['br', brotliCompressSync(Buffer.alloc(10_000_000))],
  ])('holds for a small body that unpacks into a huge one (%s)', async (name, bomb) => {
    const before = process.memoryUsage().arrayBuffers

    const body = await readAnswerBody(Readable.from([bomb]), { contentEncoding: name, maxBytes: 50_000 })

    expect(body).toMatchObject({ isTruncated: true, wireBytes: bomb.length })
    expect(body.bytes.length).toBe(50_000)
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(5_000_000)
  })

  it('holds for a body without end that unpacks into nothing', async () => {
    const nothing = gzipSync(Buffer.alloc(0))
    const source = Readable.from(
      (function* () {
        for (;;) yield nothing
      })(),
    )

    const body = await readAnswerBody(source, { contentEncoding: 'gzip', maxBytes: 1_000 })

    expect(body).toMatchObject({ bytes: Buffer.alloc(0), isTruncated: true })
    expect(body.wireBytes).toBeLessThan(100_000)
  })
})
