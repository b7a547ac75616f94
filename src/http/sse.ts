import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { refuseIfGone } from './client-gone.ts'
import { Problem } from './problem.ts'

export interface SseMessage {
  readonly event: string
  readonly data: unknown
  /** What the client sends as Last-Event-ID when it comes again. */
  readonly id?: string
}

/** A client that lost its stream comes again after this long. */
const RETRY_MS = 2_000

/** The streams of events that are open: bounded in number, and ended together when the server closes. */
export class OpenStreams {
  readonly #most: number
  readonly #heartbeatMs: number
  readonly #open = new Set<AbortController>()
  #isClosing = false

  constructor({ most, heartbeatMs }: { most: number; heartbeatMs: number }) {
    this.#most = most
    this.#heartbeatMs = heartbeatMs
  }

  get count(): number {
    return this.#open.size
  }

  /**
   * Answers with a stream of events until they end, the client goes, or the server closes.
   * @param source - Makes the events; ends when its signal is aborted.
   */
  send(reply: FastifyReply, source: (signal: AbortSignal) => AsyncIterable<SseMessage>): FastifyReply {
    if (this.#isClosing) throw new Problem('unavailable', 'The server is closing.', { retryAfterSeconds: 2 })
    if (this.#open.size >= this.#most) {
      throw new Problem('too-many-requests', `${this.#most} streams of events are open, which is all there may be.`, {
        retryAfterSeconds: 10,
      })
    }
    refuseIfGone(reply)
    const controller = new AbortController()
    this.#open.add(controller)
    const end = () => {
      this.#open.delete(controller)
      controller.abort()
    }
    // The answer's connection is gone, or all of it was sent. The stream itself would wait for its next event first.
    reply.raw.once('close', end)
    const frames = Readable.from(framesOf(source(controller.signal), this.#heartbeatMs, controller.signal), {
      objectMode: false,
    })
    return reply
      .headers({ 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
      .type('text/event-stream; charset=utf-8')
      .send(frames)
  }

  close(): void {
    this.#isClosing = true
    for (const controller of this.#open) controller.abort()
  }
}

async function* framesOf(
  source: AsyncIterable<SseMessage>,
  heartbeatMs: number,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const inbox = new Inbox(source[Symbol.asyncIterator](), signal)
  try {
    yield `retry: ${RETRY_MS}\n\n`
    while (!signal.aborted) {
      const next = await inbox.next(heartbeatMs)
      if (next === 'nothing') yield ': nothing new\n\n'
      else if (next === 'over') return
      else yield frameOf(next)
    }
  } finally {
    inbox.close()
  }
}

/**
 * The next message, if one comes in time. The iterator is asked once for each message, however often nothing came
 * meanwhile, and nothing is left behind with the signal: streams live long.
 */
class Inbox {
  readonly #messages: AsyncIterator<SseMessage>
  readonly #signal: AbortSignal
  #asked: 'nothing' | 'waiting' | 'answered' = 'nothing'
  #answer: IteratorResult<SseMessage> | undefined
  #failure: unknown
  #wake = () => {}

  constructor(messages: AsyncIterator<SseMessage>, signal: AbortSignal) {
    this.#messages = messages
    this.#signal = signal
    signal.addEventListener('abort', () => this.#wake(), { once: true })
  }

  async next(timeoutMs: number): Promise<SseMessage | 'nothing' | 'over'> {
    if (this.#asked === 'nothing') this.#ask()
    if (this.#asked === 'waiting' && !this.#signal.aborted) await this.#wait(timeoutMs)
    if (this.#signal.aborted) return 'over'
    if (this.#asked === 'waiting') return 'nothing'
    this.#asked = 'nothing'
    if (!this.#answer) throw this.#failure
    return this.#answer.done ? 'over' : this.#answer.value
  }

  close(): void {
    // What is still on its way is nobody's any more, and neither is what it complains of.
    this.#messages.return?.().catch(() => {})
  }

  #ask(): void {
    this.#asked = 'waiting'
    this.#answer = undefined
    const answered = () => {
      this.#asked = 'answered'
      this.#wake()
    }
    this.#messages.next().then(
      (answer) => {
        this.#answer = answer
        answered()
      },
      (error: unknown) => {
        this.#failure = error
        answered()
      },
    )
  }

  #wait(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

/** JSON has no line ends, so one line of data is enough; ids and events are ours and have none either. */
function frameOf({ event, id, data }: SseMessage): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}
