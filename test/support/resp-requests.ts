/** One command as a client sent it: the bytes to forward, and the words by which tests choose it. */
export interface WireRequest {
  bytes: Buffer
  /** Upper case: `FCALL`, `BLPOP`, … */
  command: string
}

const ARRAY = 0x2a // *
const NEWLINE = 0x0a

/** Cuts what a client sends into requests (RESP arrays of bulk strings, or inline lines), over any chunk borders. */
export class RequestReader {
  #rest: Buffer = Buffer.alloc(0)

  push(chunk: Buffer): WireRequest[] {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    const requests: WireRequest[] = []
    for (let request = this.#next(); request !== undefined; request = this.#next()) {
      requests.push(request)
      this.#rest = this.#rest.subarray(request.bytes.length)
    }
    return requests
  }

  #next(): WireRequest | undefined {
    const head = this.#line(0)
    if (head === undefined) return undefined
    if (this.#rest[0] !== ARRAY) return { bytes: this.#rest.subarray(0, head.end), command: firstWord(head.text) }
    const count = Number(head.text.slice(1))
    let at = head.end
    let command = ''
    for (let i = 0; i < count; i++) {
      const length = this.#line(at)
      if (length === undefined) return undefined
      const start = length.end
      at = start + Number(length.text.slice(1)) + 2
      if (at > this.#rest.length) return undefined
      if (i === 0) command = this.#rest.toString('latin1', start, at - 2).toUpperCase()
    }
    return { bytes: this.#rest.subarray(0, at), command }
  }

  #line(from: number): { text: string; end: number } | undefined {
    const newline = this.#rest.indexOf(NEWLINE, from)
    if (newline === -1) return undefined
    return { text: this.#rest.toString('latin1', from, newline - 1), end: newline + 1 }
  }
}

function firstWord(line: string): string {
  return (line.split(' ')[0] ?? '').toUpperCase()
}
