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

const INTERVALS_MS = [250, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000]

export interface LiveViewParts {
  readonly source: QueueSource
  readonly queues: readonly [string, ...string[]]
  readonly state?: Partial<TopState>
  readonly intervalMs: number
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
  #intervalMs: number
  #queueAt = 0
  #frame: Frame | undefined
  #trouble: { readonly since: number; readonly why: string } | undefined
  /** Ends the wait for the next reading. */
  #hurry = new AbortController()

  constructor(parts: LiveViewParts) {
    this.#source = parts.source
    this.#queues = parts.queues
    this.#paint = parts.paint
    this.#interruption = parts.interruption
    this.#intervalMs = parts.intervalMs
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
    this.#hurry = new AbortController()
    const signal = AbortSignal.any([this.#hurry.signal, this.#ended.signal])
    await sleep(this.#intervalMs, undefined, { signal }).catch(() => {})
  }

  async #refresh(): Promise<void> {
    if (this.#state.isFrozen) return
    const queue = this.#queue
    try {
      const found = await this.#read()
      // Somebody may have gone on to another queue meanwhile.
      if (queue !== this.#queue) return
      this.#frame = frameOf(found, this.#frame?.name === found.name ? this.#frame : undefined)
      this.#trouble = undefined
    } catch (error) {
      this.#trouble = { since: this.#trouble?.since ?? Date.now(), why: toCliError(error).message }
    }
  }

  #draw(): void {
    const frame = this.#frame
    if (!frame || this.#ended.signal.aborted) return
    const trouble = this.#trouble && { sinceMs: Date.now() - this.#trouble.since, why: this.#trouble.why }
    const live = { intervalMs: this.#intervalMs, trouble, otherQueues: this.#queues.length - 1 }
    const { columns, rows } = this.#screen
    const lines = screenLines(frame, this.#state, live, rows)
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
    this.#queueAt = (this.#queueAt + 1) % this.#queues.length
    this.#state = {
      ...this.#state,
      isFrozen: false,
      ...(this.#queues.length === 1 ? { message: 'There is only this queue.' } : {}),
    }
    this.#hurry.abort()
  }

  async #pause(): Promise<void> {
    const { question } = this.#state
    this.#state = { ...this.#state, question: undefined }
    if (!question) return
    const { tenant, isPausing } = question
    await this.#say(async () => {
      await this.#source.setTenantPaused(this.#queue, tenant, isPausing)
      this.#hurry.abort()
      return { message: isPausing ? `${tenant} is paused.` : `${tenant} goes on.` }
    })
  }

  async #explain(): Promise<void> {
    const tenant = this.#state.selected
    if (tenant === undefined) return
    await this.#say(async () => {
      const explanation = await this.#source.explain(this.#queue, tenant)
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
