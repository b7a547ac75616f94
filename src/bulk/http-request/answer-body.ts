import { pipeline, Readable, type Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib'

export interface AnswerBody {
  /** Decoded, up to the cap. */
  readonly bytes: Buffer
  /** False when the upstream encoded it in a way that was not asked for: the bytes are as they came. */
  readonly isDecoded: boolean
  /** There was more than the cap allows; the rest was not read. */
  readonly isTruncated: boolean
  /** Received, before decoding, without what HTTP adds in between. */
  readonly wireBytes: number
}

/** More is nobody's compression but somebody's trap. */
const MOST_ENCODINGS = 3

/** What an encoding may add to a body that cannot be made smaller. */
const WIRE_ALLOWANCE_BYTES = 65_536

/** Makes a decoder when the first bytes are known: they say which of its two forms `deflate` has. */
type MakeDecoder = (firstByte: number | undefined) => Transform

const decoders: Readonly<Record<string, MakeDecoder>> = {
  gzip: () => createGunzip(),
  'x-gzip': () => createGunzip(),
  br: () => createBrotliDecompress(),
  // By the standard inside a zlib frame, whose low bits say so; some servers send it bare.
  deflate: (firstByte = 8) => ((firstByte & 0x0f) === 8 ? createInflate() : createInflateRaw()),
}

/**
 * Reads and decodes a body, and never more of it than `maxBytes`: neither bytes received nor bytes decoded pass the cap by
 * more than a chunk, so a small answer that unpacks into a huge one costs no more than any other.
 */
export async function readAnswerBody(
  source: Readable,
  options: { contentEncoding: string | undefined; maxBytes: number },
): Promise<AnswerBody> {
  const makers = decodersFor(options.contentEncoding)
  const wire = new Wire(source, options.maxBytes + WIRE_ALLOWANCE_BYTES)
  const first = await wire.first()
  const kept = first === undefined ? noBytes : await keep(decode(wire, first, makers ?? []), options.maxBytes)
  return {
    ...kept,
    isTruncated: kept.isTruncated || wire.isCut,
    isDecoded: makers !== undefined,
    wireBytes: wire.bytes,
  }
}

/** The bytes as they arrive: counted, and cut off at the cap. */
class Wire {
  bytes = 0
  isCut = false
  readonly #chunks: AsyncIterator<Buffer>
  readonly #maxBytes: number

  constructor(source: Readable, maxBytes: number) {
    this.#chunks = source[Symbol.asyncIterator]()
    this.#maxBytes = maxBytes
  }

  async first(): Promise<Buffer | undefined> {
    const { done, value } = await this.#chunks.next()
    return done ? undefined : value
  }

  /** Ends early where it is cut; what a decoder makes of that is an error that says nothing. */
  async *from(first: Buffer): AsyncGenerator<Buffer> {
    try {
      for (let chunk: Buffer | undefined = first; chunk !== undefined; chunk = await this.first()) {
        this.bytes += chunk.length
        yield chunk
        this.isCut = this.bytes > this.#maxBytes
        if (this.isCut) return
      }
    } finally {
      await this.#chunks.return?.()
    }
  }
}

async function* decode(wire: Wire, first: Buffer, makers: readonly MakeDecoder[]): AsyncGenerator<Buffer> {
  if (makers.length === 0) {
    yield* wire.from(first)
    return
  }
  const chain = makers.map((make, index) => make(index === 0 ? first[0] : undefined))
  // The iteration below fails with whatever fails in between; ended early, it ends all of them.
  const decoded = pipeline([Readable.from(wire.from(first)), ...chain], () => {}) as Transform
  try {
    yield* decoded
  } catch (error) {
    if (!wire.isCut) throw error
  }
}

const noBytes = { bytes: Buffer.alloc(0), isTruncated: false }

async function keep(
  chunks: AsyncIterable<Buffer>,
  maxBytes: number,
): Promise<Pick<AnswerBody, 'bytes' | 'isTruncated'>> {
  const kept: Buffer[] = []
  let left = maxBytes
  let isTruncated = false
  for await (const chunk of chunks) {
    kept.push(chunk.subarray(0, left))
    isTruncated = chunk.length > left
    left -= Math.min(left, chunk.length)
    if (isTruncated) break
  }
  return { bytes: Buffer.concat(kept), isTruncated }
}

/** In the order in which they are undone; undefined when one of them is not known. */
function decodersFor(contentEncoding = ''): MakeDecoder[] | undefined {
  const names = contentEncoding
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'identity')
  const known = names.flatMap((name) => (Object.hasOwn(decoders, name) ? [decoders[name] as MakeDecoder] : []))
  return known.length === names.length && names.length <= MOST_ENCODINGS ? known.reverse() : undefined
}
