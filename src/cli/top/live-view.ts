import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { describeExplanation } from '../../index.ts'
import { toCliError } from '../cli-error.ts'
import type { ExitName } from '../exit-codes.ts'
import type { Interruption } from '../interruption.ts'
import type { QueueSource } from '../queue-source.ts'
import { type Frame, frameOf } from './frame.ts'
import { screenLines } from './layout.ts'
import { type Paint, paintLine } from './line.ts'
import { Screen, type ScreenInput, type ScreenOutput } from './screen.ts'
import { firstState, type Key, press, shownTenants, type TopState, type Wish } from './state.ts'

/** All that the store looks at for its answer: what is not asked for cannot be sorted. */
export const TENANTS = 128

/** An answer that takes longer is not live. */
const LATE_MS = 5_000

const INTERVALS_MS = [250, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000]

export interface LiveViewParts {
  readonly source: QueueSource
  readonly queues: readonly [string, ...string[]]
  readonly state?: Partial<TopState>
  readonly intervalMs: number
  /** After how long without an answer it says so. @default 5_000 */
  readonly lateMs?: number
  readonly output: ScreenOutput
  readonly input: ScreenInput
  readonly paint: Paint
  readonly interruption: Pick<Interruption, 'signal' | 'exit'>
}

/** The live view: reads the queue again and again, draws it, and does what keys ask for. */
export class LiveView {
  readonly #source: QueueSource
  readonly #queues: readonly [string, ...string[]]
  readonly #paint: Paint
  readonly #interruption: LiveViewParts['interruption']
  readonly #screen: Screen
  readonly #ended = new AbortController()
  #exit: ExitName = 'ok'
  #state: TopState
  readonly #lateMs: number
  #intervalMs: number
  #queueAt = 0
  /** What is on the screen. Undefined until the queue that was gone on to is read: keys must not act on another one's tenants. */
  #frame: Frame | undefined
  #trouble: { readonly since: number; readonly why: string } | undefined
  /** Ends the wait for the next reading, or for the answer to the last one: another follows at once. */
  #hurry = new AbortController()

  constructor(parts: LiveViewParts) {
    this.#source = parts.source
    this.#queues = parts.queues
    this.#paint = parts.paint
    this.#interruption = parts.interruption
    this.#intervalMs = parts.intervalMs
    this.#lateMs = parts.lateMs ?? LATE_MS
    this.#state = { ...firstState, ...parts.state }
    this.#screen = new Screen({
      output: parts.output,
      input: parts.input,
      onKey: (key) => this.#press(key),
      onResize: () => this.#draw(),
    })
  }

  /** Until somebody quits. What cannot be read at the beginning is an error; later it is said on the screen. */
  async run(): Promise<ExitName> {
    this.#frame = frameOf(await this.#read(), undefined)
    const onSignal = () => this.#end(this.#interruption.exit ?? 'interrupted')
    if (this.#interruption.signal.aborted) return this.#interruption.exit ?? 'interrupted'
    this.#interruption.signal.addEventListener('abort', onSignal, { once: true })
    this.#screen.open()
    try {
      while (!this.#ended.signal.aborted) {
        this.#draw()
        await this.#nextReading()
        if (!this.#ended.signal.aborted) await this.#refresh()
      }
    } finally {
      this.#interruption.signal.removeEventListener('abort', onSignal)
      this.#screen.close()
    }
    return this.#exit
  }

  get #queue(): string {
    return this.#queues[this.#queueAt] ?? this.#queues[0]
  }

  #read() {
    return this.#source.overview(this.#queue, { tenants: TENANTS })
  }

  async #nextReading(): Promise<void> {
    await sleep(this.#intervalMs, undefined, { signal: this.#hurry.signal }).catch(() => {})
  }

  async #refresh(): Promise<void> {
    this.#hurry = new AbortController()
    if (this.#state.isFrozen) return
    const begun = Date.now()
    const late = setInterval(() => {
      this.#trouble ??= { since: begun, why: 'still waiting for it' }
      this.#draw()
    }, this.#lateMs)
    // Whoever quits, or goes on to another queue, does not wait for an answer.
    const left = once(this.#hurry.signal, 'abort').then(() => undefined)
    try {
      const found = await Promise.race([this.#read(), left])
      if (!found) return
      this.#frame = frameOf(found, this.#frame)
      this.#trouble = undefined
    } catch (error) {
      this.#trouble = { since: this.#trouble?.since ?? begun, why: toCliError(error).message }
    } finally {
      clearInterval(late)
    }
  }

  #draw(): void {
    if (this.#ended.signal.aborted) return
    const trouble = this.#trouble && { sinceMs: Date.now() - this.#trouble.since, why: this.#trouble.why }
    const live = { queue: this.#queue, intervalMs: this.#intervalMs, trouble, otherQueues: this.#queues.length - 1 }
    const { columns, rows } = this.#screen
    const lines = screenLines(this.#frame, this.#state, live, rows)
    this.#screen.draw(lines.map((line) => paintLine(line, columns, this.#paint)))
  }

  #press(key: Key): void {
    const shown = this.#frame ? shownTenants(this.#frame.tenants, this.#state) : []
    const { state, wish } = press(this.#state, key, shown)
    this.#state = state
    if (wish) this.#deeds[wish]()
    this.#draw()
  }

  /** What each wish does. */
  readonly #deeds: Readonly<Record<Wish, () => void>> = {
    quit: () => this.#end('ok'),
    interrupt: () => this.#end('interrupted'),
    suspend: () => this.#suspend(),
    redraw: () => this.#screen.forget(),
    refresh: () => this.#hurry.abort(),
    'next-queue': () => this.#nextQueue(),
    pause: () => void this.#pause(),
    explain: () => void this.#explain(),
    slower: () => this.#setInterval(INTERVALS_MS.find((ms) => ms > this.#intervalMs)),
    faster: () => this.#setInterval(INTERVALS_MS.findLast((ms) => ms < this.#intervalMs)),
  }

  #setInterval(ms: number | undefined): void {
    this.#intervalMs = ms ?? this.#intervalMs
    this.#hurry.abort()
  }

  #end(exit: ExitName): void {
    if (this.#ended.signal.aborted) return
    this.#exit = exit
    this.#ended.abort()
    this.#hurry.abort()
  }

  /** Ctrl-Z: the shell gets its screen until it says "fg". */
  #suspend(): void {
    this.#screen.close()
    process.once('SIGCONT', () => {
      this.#screen.open()
      this.#draw()
    })
    process.kill(process.pid, 'SIGTSTP')
  }

  #nextQueue(): void {
    if (this.#queues.length === 1) {
      this.#state = { ...this.#state, message: 'There is only this queue.' }
      return
    }
    this.#queueAt = (this.#queueAt + 1) % this.#queues.length
    this.#frame = undefined
    this.#state = { ...this.#state, isFrozen: false }
    this.#hurry.abort()
  }

  async #pause(): Promise<void> {
    const { question } = this.#state
    this.#state = { ...this.#state, question: undefined }
    if (!question) return
    const { tenant, isPausing } = question
    const queue = this.#queue
    await this.#say(async () => {
      await this.#source.setTenantPaused(queue, tenant, isPausing)
      this.#hurry.abort()
      // Somebody may have gone on to another queue meanwhile.
      const who = queue === this.#queue ? tenant : `${tenant} of ${queue}`
      return { message: isPausing ? `${who} is paused.` : `${who} goes on.` }
    })
  }

  async #explain(): Promise<void> {
    const tenant = this.#state.selected
    if (tenant === undefined) return
    const queue = this.#queue
    await this.#say(async () => {
      const explanation = await this.#source.explain(queue, tenant)
      if (queue !== this.#queue) return {}
      return { note: { title: `Why is ${tenant} waiting?`, lines: describeExplanation(explanation).split('\n') } }
    })
  }

  /** Something that takes a moment, with its answer, or why there is none. */
  async #say(act: () => Promise<Partial<TopState>>): Promise<void> {
    try {
      const said = await act()
      this.#state = { ...this.#state, ...said }
    } catch (error) {
      this.#state = { ...this.#state, message: toCliError(error).message }
    }
    this.#draw()
  }
}
