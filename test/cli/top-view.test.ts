import { EventEmitter } from 'node:events'
import { PassThrough } from 'node:stream'
import { styleText } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { CliError } from '../../src/cli/cli-error.ts'
import type { QueueSource } from '../../src/cli/queue-source.ts'
import { LiveView } from '../../src/cli/top/live-view.ts'
import type { Explanation, QueueOverview, TenantOverview } from '../../src/index.ts'
import { VirtualTerminal } from './virtual-terminal.ts'

function tenant(name: string, values: Partial<TenantOverview> = {}): TenantOverview {
  return {
    tenant: name,
    state: 'ready',
    parkedBy: undefined,
    parkedUntil: undefined,
    weight: 1,
    basePriority: 0,
    levelOverride: undefined,
    waiting: 10,
    delayed: 0,
    running: 1,
    longestWaitMs: 0,
    level: 'NONE',
    speed: 5,
    etaMs: 2_000,
    ...values,
  }
}

function overview(name: string, values: Partial<QueueOverview> = {}): QueueOverview {
  const nothing = { submitted: 0, claimed: 0, succeeded: 0, failed: 0, retried: 0, throttled: 0 }
  return {
    at: 1_768_000_000_000,
    name,
    paused: false,
    levelsPaused: { high: false, normal: false, low: false },
    counts: { waiting: 30, delayed: 2, running: 3, ...nothing } as QueueOverview['counts'],
    backlog: {
      ...{ waiting: 30, speed: 10, isMeasured: true, backoffMs: 3_000, level: 'LOW', etaMs: 3_000, etaAt: 0 },
      activeTenants: 3,
    },
    limits: [
      {
        ...{ name: 'queue', scope: 'queue', kind: 'bucket', limit: 100, used: 75, isEstimated: false, remaining: 25 },
        ...{ resetAt: undefined, closedUntil: undefined, pushedBackUntil: undefined },
        ...{ effectivePerSecond: 95, jitterMs: 50, activeTenants: 3, sharePerTenant: 33 },
      },
    ],
    workers: [
      { client: 'rs-abc-pool', pid: 1_000, running: 3, since: 1_767_999_999_000, leasedUntil: undefined, isIdle: true },
    ],
    tenants: [
      tenant('acme', { waiting: 20, etaMs: 1_000 }),
      tenant('globex', { waiting: 7, speed: 1, etaMs: 9_000, level: 'HIGH' }),
      tenant('initech', { waiting: 3, speed: 9, state: 'parked', parkedBy: 'tenant' }),
    ],
    ...values,
  } as QueueOverview
}

/** Queues that are what a test says. */
class FakeSource implements QueueSource {
  readonly name = 'http://fake'
  readonly changes: unknown[] = []
  queue: (name: string) => QueueOverview | Promise<QueueOverview> = (name) => overview(name)

  queues = () => Promise.resolve(['web'])
  overview = async (name: string) => this.queue(name)
  explain = async () =>
    ({ subject: { tenant: 'globex' }, isRunnable: true, gates: [], text: 'It may run now.' }) as unknown as Explanation
  setTenantPaused = async (...change: unknown[]) => void this.changes.push(change)
  // biome-ignore lint/correctness/useYield: the view follows no events.
  async *events() {
    throw new Error('not asked for')
  }
  close = () => Promise.resolve()
}

/** The view on a terminal that only tests see, with keys to press. */
function show(source: FakeSource, options: { queues?: [string, ...string[]]; lateMs?: number } = {}) {
  const terminal = new VirtualTerminal({ columns: 110, rows: 20 })
  const size = { columns: 110, rows: 20 }
  const output = Object.assign(new EventEmitter(), size, { write: (text: string) => terminal.write(text) })
  const input = Object.assign(new PassThrough(), {
    isTTY: true,
    isRaw: false,
    setRawMode: (isRaw: boolean) => (input.isRaw = isRaw),
  })
  const interruption = new AbortController()
  const view = new LiveView({
    ...{ source, output, input, intervalMs: 60_000, queues: ['web'] as [string], ...options },
    paint: (style, text) => styleText(style, text, { validateStream: false }),
    interruption: { signal: interruption.signal, exit: 'terminated' },
  })
  const ended = view.run()
  onTestFinished(() => interruption.abort())
  return {
    terminal,
    input,
    ended,
    press: (keys: string) => void input.write(keys),
    refresh: () => void input.write('  '),
    terminate: () => interruption.abort(),
    resize(columns: number, rows: number) {
      terminal.resize({ columns, rows })
      Object.assign(output, { columns, rows })
      output.emit('resize')
    },
    order: () => terminal.lines.flatMap((line) => /^(acme|globex|initech)\b/.exec(line)?.[1] ?? []),
  }
}

const [UP, DOWN, ESCAPE, CTRL_C, ENTER, TAB] = ['\x1b[A', '\x1b[B', '\x1b', '\x03', '\r', '\t']

describe('the live view', () => {
  it('fills the screen with the queue, its rates and its tenants, and gives it back at q', async () => {
    const source = new FakeSource()
    const { terminal, press, ended, input } = show(source)
    await terminal.shows(/queue web .*LOW/)
    const { isAlternate, text } = terminal
    const wasRaw = input.isRaw

    press('q')

    expect(await ended).toBe('ok')
    expect(text).toMatch(/waiting 30 {2}delayed 2 {2}running 3 {2}in – {2}started 10\/s/)
    expect(text).toMatch(
      /^tenant +state +waiting ▼ .*\nacme +ready +20 .*\nglobex +ready +7 .* HIGH .*\ninitech +parked +3 /m,
    )
    expect([isAlternate, wasRaw]).toEqual([true, true])
    await terminal.hides(/queue web/)
    expect([terminal.isAlternate, input.isRaw]).toEqual([false, false])
    expect(terminal.raw.endsWith('\x1b[?25h\x1b[?1049l')).toBe(true)
  })

  it('shows rates from the second reading on', async () => {
    const source = new FakeSource()
    const { terminal, refresh } = show(source)
    await terminal.shows(/in –/)

    const { counts } = overview('web')
    source.queue = (name) =>
      overview(name, {
        at: 1_768_000_002_000,
        counts: { ...counts, submitted: 50, claimed: 40, succeeded: 30, failed: 2 },
      })
    refresh()

    await terminal.shows(/in 25\/s {2}started 20\/s {2}done 15\/s {2}failed 1\/s {2}again 0\/s/)
  })

  it('writes only lines that have changed', async () => {
    const source = new FakeSource()
    const { terminal, refresh } = show(source)
    await terminal.shows(/acme/)
    const before = terminal.raw.length

    source.queue = (name) =>
      overview(name, { tenants: [tenant('acme', { waiting: 21 }), ...overview(name).tenants.slice(1)] })
    refresh()
    await terminal.shows(/acme +ready +21/)

    const written = terminal.raw.slice(before)
    expect(written).not.toContain('globex')
    expect(written).not.toContain('\x1b[2J')
  })

  it('sorts by what a key says, and the other way round when it is pressed again', async () => {
    const { terminal, press, order } = show(new FakeSource())
    await terminal.shows(/sorted by backlog/)
    const orders: string[][] = []
    for (const [key, mark] of [
      ['r', /rate ▼/],
      ['w', /wait ▼/],
      ['c', /congestion ▼/],
      ['n', /tenant ▼/],
      ['n', /tenant ▲/],
      ['b', /waiting ▼/],
    ] as const) {
      press(key)
      await terminal.shows(mark)
      orders.push(order())
    }

    expect(orders).toEqual([
      ['initech', 'acme', 'globex'],
      ['globex', 'initech', 'acme'],
      ['globex', 'acme', 'initech'],
      ['acme', 'globex', 'initech'],
      ['initech', 'globex', 'acme'],
      ['acme', 'globex', 'initech'],
    ])
  })

  it('filters tenants by what is typed, and shows all again at escape', async () => {
    const { terminal, press, order } = show(new FakeSource())
    await terminal.shows(/acme/)

    press('/GLOq\x7f')
    await terminal.shows(/filter: GLO▏/)
    const found = order()
    press(ENTER)
    await terminal.shows(/only "GLO"/)
    press(ESCAPE)
    await terminal.shows(/acme/)

    expect(found).toEqual(['globex'])
    expect(terminal.text).not.toContain('only "GLO"')
  })

  it('shows limits and workers, and another queue', async () => {
    const { terminal, press } = show(new FakeSource(), { queues: ['web', 'mail'] })
    await terminal.shows(/1 more queues/)

    press('2')
    await terminal.shows(/queue +queue +bucket +100 +75 +25 +█{12}░{4} +95\/s/)
    press('3')
    await terminal.shows(/rs-abc +1000 +3 +1 s +– +wants more/)
    press(TAB)
    await terminal.shows(/queue mail/)
  })

  it('acts on no tenant of the queue it came from, nor on any before the next one is read', async () => {
    const source = new FakeSource()
    const { terminal, press } = show(source, { queues: ['web', 'mail'] })
    await terminal.shows(/queue web(.*\n)+acme/)
    let answer = (_found: QueueOverview) => {}
    source.queue = () =>
      new Promise((resolve) => {
        answer = resolve
      })

    press(`${TAB}jpy`)
    await terminal.shows(/queue mail {2}…/)
    const { text } = terminal
    const untouched = [...source.changes]
    answer(overview('mail', { tenants: [tenant('umbrella')] }))
    await terminal.shows(/umbrella/)
    press('jpy')
    await terminal.shows(/umbrella is paused/)

    expect(text).not.toContain('acme')
    expect(untouched).toEqual([])
    expect(source.changes).toEqual([['mail', 'umbrella', true]])
  })

  it('goes on to another queue, and quits, without waiting for an answer that does not come', async () => {
    const source = new FakeSource()
    const { terminal, press, refresh, ended } = show(source, { queues: ['web', 'mail'], lateMs: 20 })
    await terminal.shows(/sluice top {2}live/)
    source.queue = (name) => (name === 'web' ? new Promise(() => {}) : overview(name))

    refresh()
    await terminal.shows(/no answer for .* \(still waiting for it\)/)
    press(TAB)
    await terminal.shows(/sluice top {2}live(.*\n)+queue mail {2}LOW/)
    press(TAB)
    await terminal.shows(/queue web {2}…/)
    press('q')

    expect(await ended).toBe('ok')
  })

  it('shows no explanation of a tenant of another queue', async () => {
    const source = new FakeSource()
    const asked: unknown[] = []
    let answer = (_found: Explanation) => {}
    const { terminal, press } = show(source, { queues: ['web', 'mail'] })
    const { explain } = source
    source.explain = (...subject: unknown[]) => {
      asked.push(subject)
      return new Promise((resolve) => {
        answer = resolve
      })
    }
    await terminal.shows(/acme/)

    press(`${DOWN}${ENTER}${TAB}`)
    await terminal.shows(/queue mail {2}LOW/)
    answer(await explain())
    press('2')
    await terminal.shows(/bucket/)

    expect(asked).toEqual([['web', 'acme']])
    expect(terminal.text).not.toContain('Why is')
  })

  it('pauses the tenant that is chosen only after a question, and resumes one that is paused', async () => {
    const source = new FakeSource()
    const { terminal, press, refresh } = show(source)
    await terminal.shows(/acme/)

    press('p')
    await terminal.shows(/Choose a tenant first/)
    press(`${DOWN}${DOWN}${DOWN}${UP}`)
    await terminal.shows(/q quit/)
    const marked = terminal.markedLine
    press('pn')
    await terminal.shows(/Nothing was changed/)
    const untouched = [...source.changes]
    press('p')
    await terminal.shows(/Pause globex\? .* y\/n/)
    press('y')
    await terminal.shows(/globex is paused/)
    source.queue = (name) => overview(name, { tenants: [tenant('globex', { state: 'paused' })] })
    refresh()
    await terminal.shows(/globex +paused/)
    press('p')
    await terminal.shows(/Resume globex\?/)
    press('y')
    await terminal.shows(/globex goes on/)

    expect(marked).toMatch(/^globex/)
    expect(untouched).toEqual([])
    expect(source.changes).toEqual([
      ['web', 'globex', true],
      ['web', 'globex', false],
    ])
  })

  it('says why a tenant waits, and what keys there are', async () => {
    const source = new FakeSource()
    source.explain = () => Promise.reject(new CliError('unreachable', 'no answer from there'))
    const { terminal, press } = show(source)
    await terminal.shows(/acme/)

    press('?')
    await terminal.shows(/space +freeze and go on/)
    press('x')
    await terminal.hides(/freeze and go on/)
    press(`${DOWN}${ENTER}`)
    await terminal.shows(/no answer from there/)
  })

  it('fits a smaller terminal, and a larger one, with the chosen tenant in sight', async () => {
    const source = new FakeSource()
    source.queue = (name) =>
      overview(name, { tenants: Array.from({ length: 50 }, (_, at) => tenant(`t${at}`, { waiting: 100 - at })) })
    const { terminal, press, resize } = show(source)
    await terminal.shows(/t0 /)

    resize(40, 10)
    await terminal.hides(/congestion/)
    const small = terminal.lines
    press('\x1b[F')
    await terminal.shows(/t49 /)
    resize(110, 30)
    await terminal.shows(/t27 /)

    expect(small).toHaveLength(10)
    expect(small[0]).toMatch(/^sluice top {2}live/)
    expect(small.at(-1)).toMatch(/…$/)
    expect(terminal.lines.filter((line) => /^t\d/.test(line))).toHaveLength(23)
    expect(terminal.markedLine).toMatch(/^t49/)
  })

  it('keeps what it knows when there is no answer, says so, and goes on when there is one', async () => {
    const source = new FakeSource()
    const { terminal, refresh } = show(source)
    await terminal.shows(/live/)

    source.queue = () => {
      throw new CliError('unreachable', 'gone away')
    }
    refresh()
    await terminal.shows(/no answer for .* \(gone away\)/)
    const { text } = terminal
    source.queue = (name) => overview(name)
    refresh()
    await terminal.shows(/sluice top {2}live/)

    expect(text).toContain('acme')
  })

  it('lets nothing that a name holds reach the terminal but letters', async () => {
    const source = new FakeSource()
    source.queue = (name) => overview(name, { tenants: [tenant('evil\x1b[2Jname')] })
    const { terminal } = show(source)

    await terminal.shows(/evil·\[2Jname/)
  })

  it.each([
    { how: 'Ctrl-C', end: (view: ReturnType<typeof show>) => view.press(CTRL_C), exit: 'interrupted' },
    { how: 'a signal', end: (view: ReturnType<typeof show>) => view.terminate(), exit: 'terminated' },
  ])('gives the screen back at $how', async ({ end, exit }) => {
    const view = show(new FakeSource())
    await view.terminal.shows(/acme/)

    end(view)

    expect(await view.ended).toBe(exit)
    await view.terminal.hides(/acme/)
    expect(view.terminal.isAlternate).toBe(false)
  })

  it('is an error, and no screen, when there is nothing to show at first', async () => {
    const source = new FakeSource()
    source.queue = () => {
      throw new CliError('unreachable', 'gone away')
    }
    const { ended, terminal } = show(source)

    await expect(ended).rejects.toThrow('gone away')
    expect(terminal.raw).toBe('')
  })
})
