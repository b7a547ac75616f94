import { connect } from 'node:net'
import { ReadableStream } from 'node:stream/web'
import { createParser, type EventSourceMessage } from 'eventsource-parser'

const PIECE_CHARACTERS = 16_384

/** Posts lines as they are made: no more of them is made than the other side takes. */
export async function postLines(
  url: string,
  lines: AsyncIterable<string> | Iterable<string>,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<Response> {
  const encoder = new TextEncoder()
  async function* bytes() {
    let piece = ''
    for await (const line of lines) {
      piece += `${line}\n`
      if (piece.length < PIECE_CHARACTERS) continue
      yield encoder.encode(piece)
      piece = ''
    }
    yield encoder.encode(piece)
  }
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson', ...headers },
    body: ReadableStream.from(bytes()) as never,
    duplex: 'half',
    ...(signal ? { signal } : {}),
  } as RequestInit)
}

/** Server-sent events and comments of a stream, until it ends or is left. */
export async function* events(
  url: string,
  headers: Record<string, string> = {},
): AsyncGenerator<EventSourceMessage & { comment?: string }> {
  const controller = new AbortController()
  const response = await fetch(url, { headers, signal: controller.signal })
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
    throw new Error(`${response.status} is no stream of events: ${await response.text()}`)
  }
  const found: (EventSourceMessage & { comment?: string })[] = []
  const parser = createParser({
    onEvent: (event) => found.push(event),
    onComment: (comment) => found.push({ data: '', comment } as EventSourceMessage & { comment: string }),
  })
  try {
    const decoder = new TextDecoder()
    for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) {
      parser.feed(decoder.decode(piece, { stream: true }))
      yield* found.splice(0)
    }
  } finally {
    controller.abort()
  }
}

/** What the server says on a connection on which these bytes arrive and then no more, until it closes it. */
export function rawExchange(port: number, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    socket.setEncoding('utf8').on('data', (piece) => {
      said += piece
    })
    socket.on('error', reject).on('close', () => resolve(said))
  })
}

/** Status and problem document of an answer as it came over the wire. */
export function parseAnswer(said: string): { status: number; body: Record<string, unknown> } {
  const [head = '', body = ''] = said.split('\r\n\r\n', 2)
  return {
    status: Number(head.split(' ', 2)[1]),
    body: JSON.parse(body.slice(body.indexOf('{'), body.lastIndexOf('}') + 1)),
  }
}
