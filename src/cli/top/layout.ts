import type { CongestionLevel, LimitStatus, TenantOverview, WorkerView } from '../../index.ts'
import { levels } from '../../store/names.ts'
import { sayDuration } from '../duration.ts'
import type { Style } from '../output.ts'
import type { Frame } from './frame.ts'
import { type Line, type Segment, tableLines } from './line.ts'
import { type Sort, shownTenants, type TopState } from './state.ts'

const numbers = new Intl.NumberFormat('en')
const rates = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })

const levelStyles: Readonly<Record<CongestionLevel, Style | undefined>> = {
  NONE: 'green',
  LOW: undefined,
  MODERATE: 'yellow',
  HIGH: 'red',
  CRITICAL: 'red',
}

/** How the figures come to the screen. */
export interface Liveness {
  /** The queue that is wanted, be it read or not. */
  readonly queue: string
  readonly intervalMs: number
  /** Since when there is no answer, and why; undefined: there is one. */
  readonly trouble: { readonly sinceMs: number; readonly why: string } | undefined
  /** Beside it, for `tab`. */
  readonly otherQueues: number
}

/** What holds for every view: the queue, its counts and rates, and what limits it. */
function headLines(frame: Frame): Line[] {
  const { counts, backlog, perSecond, workers } = frame
  const busy = workers.filter(({ running }) => running > 0).length
  const idle = workers.filter(({ isIdle }) => isIdle).length
  const rate = (value: number | undefined) => (value === undefined ? '–' : `${rates.format(value)}/s`)
  return [
    [
      { text: `queue ${frame.name}`, style: 'bold' },
      ...pauseOf(frame),
      '  ',
      styled(backlog.level, levelStyles[backlog.level]),
      `  backoff ${sayDuration(backlog.backoffMs)}`,
    ],
    [
      `waiting ${numbers.format(counts.waiting)}`,
      `  delayed ${numbers.format(counts.delayed)}`,
      `  running ${numbers.format(counts.running)}`,
      `  in ${rate(perSecond?.submitted)}`,
      `  started ${rate(perSecond?.started ?? (backlog.isMeasured ? backlog.speed : undefined))}`,
      `  done ${rate(perSecond?.succeeded)}`,
      '  ',
      styled(`failed ${rate(perSecond?.failed)}`, (perSecond?.failed ?? 0) > 0 ? 'red' : undefined),
      `  again ${rate(perSecond?.again)}`,
    ],
    [
      counts.waiting === 0 ? 'nothing waits' : `all started in ${sayDuration(backlog.etaMs)}`,
      `  tenants in line or parked ${numbers.format(backlog.activeTenants)}`,
      '  ',
      styled(
        workers.length === 0 ? 'no worker is known' : `workers ${workers.length}, with jobs ${busy}, idle ${idle}`,
        workers.length === 0 && counts.waiting > 0 ? 'yellow' : undefined,
      ),
    ],
  ]
}

function pauseOf({ paused, levelsPaused }: Frame): Segment[] {
  if (paused) return ['  ', { text: 'PAUSED', style: 'yellow' }]
  const named = levels.filter((level) => levelsPaused[level])
  return named.length === 0 ? [] : ['  ', { text: `paused: ${named.join(', ')}`, style: 'yellow' }]
}

function styled(text: string, style: Style | undefined): Segment {
  return style === undefined ? text : { text, style }
}

const sortedColumn: Readonly<Record<Sort, string>> = {
  name: 'tenant',
  backlog: 'waiting',
  rate: 'rate',
  wait: 'wait',
  congestion: 'congestion',
}

const columnsOfTenants = [
  { head: 'tenant' },
  { head: 'state' },
  { head: 'waiting', isNumber: true },
  { head: 'delayed', isNumber: true },
  { head: 'running', isNumber: true },
  { head: 'rate', isNumber: true },
  { head: 'wait', isNumber: true },
  { head: 'congestion' },
  { head: 'weight', isNumber: true },
  { head: 'parked by' },
]

/** The tenants that fit, with the one that is marked. @param rows - How many there is room for. */
function tenantLines(frame: Frame, state: TopState, rows = Number.POSITIVE_INFINITY): Line[] {
  const shown = shownTenants(frame.tenants, state)
  if (shown.length === 0) return [[emptyWords(frame, state)]]
  const at = shown.findIndex(({ tenant }) => tenant === state.selected)
  // The heads take a line; the marked one stays in sight.
  const room = Math.max(1, rows - 1)
  const first = Math.max(0, Math.min(at - room + 1, shown.length - room))
  const mark = state.isReversed ? '▲' : '▼'
  const columns = columnsOfTenants.map((column) =>
    column.head === sortedColumn[state.sort] ? { ...column, head: `${column.head} ${mark}` } : column,
  )
  return tableLines(
    columns,
    shown.slice(first, first + room).map((tenant) => ({
      cells: cellsOf(tenant, frame.at),
      style: tenant.tenant === state.selected ? 'inverse' : undefined,
    })),
  )
}

function emptyWords({ tenants }: Frame, { filter }: TopState): string {
  return tenants.length === 0 ? 'No tenant has work or is paused.' : `No tenant fits "${filter}".`
}

function cellsOf(view: TenantOverview, now: number): Segment[] {
  const { tenant, state, waiting, delayed, running, speed, etaMs, level, weight } = view
  const stateStyles: Partial<Record<TenantOverview['state'], Style>> = { paused: 'yellow', parked: 'cyan' }
  return [
    tenant,
    styled(state, stateStyles[state]),
    numbers.format(waiting),
    numbers.format(delayed),
    numbers.format(running),
    `${rates.format(speed)}/s`,
    waiting === 0 ? '–' : sayDuration(etaMs),
    styled(level, levelStyles[level]),
    rates.format(weight),
    parkWords(view, now),
  ]
}

function parkWords({ state, parkedBy, parkedUntil }: TenantOverview, now: number): string {
  if (state !== 'parked') return ''
  const until = parkedUntil === undefined ? ' until a job ends' : ` for ${sayDuration(Math.max(0, parkedUntil - now))}`
  return `${parkedBy ?? 'a limit'}${until}`
}

const BAR_WIDTH = 16

function limitLines({ limits, at }: Frame): Line[] {
  if (limits.length === 0) return [['The queue has no limits.']]
  const columns = [
    { head: 'limit' },
    { head: 'of' },
    { head: 'kind' },
    { head: 'allows', isNumber: true },
    { head: 'used', isNumber: true },
    { head: 'left', isNumber: true },
    { head: '' },
    { head: 'rate', isNumber: true },
    { head: 'closed for' },
  ]
  return tableLines(
    columns,
    limits.map((limit) => ({ cells: limitCells(limit, at) })),
  )
}

function limitCells(limit: LimitStatus, now: number): Segment[] {
  const { name, scope, kind, limit: allows, used, remaining, effectivePerSecond, closedUntil, pushedBackUntil } = limit
  const inAll = used + remaining
  const share = inAll <= 0 ? 0 : Math.min(1, used / inAll)
  const filled = Math.round(share * BAR_WIDTH)
  const closed = closedUntil === undefined ? '' : sayDuration(Math.max(0, closedUntil - now))
  return [
    name,
    scope,
    kind,
    numbers.format(allows),
    numbers.format(Math.round(used)),
    numbers.format(Math.floor(remaining)),
    styled('█'.repeat(filled) + '░'.repeat(BAR_WIDTH - filled), share >= 0.9 ? 'yellow' : 'green'),
    effectivePerSecond === undefined ? '–' : `${rates.format(effectivePerSecond)}/s`,
    styled(
      pushedBackUntil === undefined ? closed : `${closed} by its upstream`,
      pushedBackUntil === undefined ? undefined : 'red',
    ),
  ]
}

function workerLines({ workers, at }: Frame): Line[] {
  if (workers.length === 0) return [['No process holds a job or waits for one. Start one with "sluice worker".']]
  const columns = [
    { head: 'worker' },
    { head: 'pid', isNumber: true },
    { head: 'holds', isNumber: true },
    { head: 'oldest', isNumber: true },
    { head: 'leased for', isNumber: true },
    { head: '' },
  ]
  return tableLines(
    columns,
    workers.map((worker) => ({ cells: workerCells(worker, at) })),
  )
}

function workerCells({ client, pid, running, since, leasedUntil, isIdle }: WorkerView, now: number): Segment[] {
  return [
    client.replace(/-pool$/, ''),
    String(pid),
    numbers.format(running),
    since === undefined ? '–' : sayDuration(Math.max(0, now - since)),
    leasedUntil === undefined ? '–' : sayDuration(Math.max(0, leasedUntil - now)),
    isIdle ? 'wants more' : '',
  ]
}

/** The whole of it as text, for one look: head, limits, tenants and workers. */
export function wholeFrame(frame: Frame, state: TopState): Line[] {
  return [
    ...headLines(frame),
    [''],
    ...limitLines(frame),
    [''],
    ...tenantLines(frame, state),
    ...(frame.workers.length === 0 ? [] : [[''], ...workerLines(frame)]),
  ]
}

/** Exactly as many lines as the screen has. @param frame - Undefined: the queue was not read yet. */
export function screenLines(frame: Frame | undefined, state: TopState, live: Liveness, rows: number): Line[] {
  const head = [statusLine(live, state), ...(frame ? headLines(frame) : unreadLines(live)), ['']]
  const foot = [footLine(state)]
  const room = Math.max(0, rows - head.length - foot.length)
  const body = bodyLines(frame, state, room).slice(0, room)
  const filler: Line[] = Array.from({ length: room - body.length }, () => [''])
  return [...head.slice(0, rows - foot.length), ...body, ...filler, ...foot].slice(-rows)
}

/** As many lines as the head of a queue that was read: nothing below jumps. */
function unreadLines({ queue }: Liveness): Line[] {
  return [[{ text: `queue ${queue}`, style: 'bold' }, '  …'], [''], ['']]
}

function bodyLines(frame: Frame | undefined, state: TopState, room: number): Line[] {
  if (state.isHelping) return helpLines
  if (state.note) return [[{ text: state.note.title, style: 'bold' }], ...state.note.lines.map((line): Line => [line])]
  if (!frame) return []
  if (state.view === 'limits') return limitLines(frame)
  if (state.view === 'workers') return workerLines(frame)
  return tenantLines(frame, state, room)
}

function statusLine({ intervalMs, trouble, otherQueues }: Liveness, { isFrozen, filter, sort }: TopState): Line {
  const badge: Segment = trouble
    ? { text: `no answer for ${sayDuration(trouble.sinceMs)} (${trouble.why})`, style: 'red' }
    : isFrozen
      ? { text: 'frozen', style: 'yellow' }
      : { text: 'live', style: 'green' }
  return [
    { text: 'sluice top', style: 'bold' },
    '  ',
    badge,
    `  every ${sayDuration(intervalMs)}  sorted by ${sort}`,
    ...(filter === '' ? [] : [`  only "${filter}"`]),
    ...(otherQueues === 0 ? [] : [`  ${otherQueues} more queues: tab`]),
  ]
}

function footLine({ isTyping, filter, question, message, isHelping, note }: TopState): Line {
  if (isTyping) return [{ text: `filter: ${filter}▏`, style: 'bold' }, '  enter keeps it, esc clears it']
  if (question) {
    const what = question.isPausing
      ? `Pause ${question.tenant}? None of its jobs start then.`
      : `Resume ${question.tenant}?`
    return [{ text: `${what} y/n`, style: 'yellow' }]
  }
  if (message !== undefined) return [{ text: message, style: 'yellow' }]
  if (isHelping || note) return [{ text: 'any key goes back', style: 'dim' }]
  return [
    {
      text: '1 tenants 2 limits 3 workers │ sort: b r w c n │ / filter │ ↑↓ enter why p pause │ ? help │ q quit',
      style: 'dim',
    },
  ]
}

const helpLines: Line[] = [
  [{ text: 'Keys', style: 'bold' }],
  ['1 2 3        tenants, limits, workers'],
  ['tab          the next queue'],
  ['b r w c n    sort tenants by backlog, rate, wait, congestion, name; again: the other way round'],
  ['↑ ↓ j k      choose a tenant; page up, page down, home, end'],
  ['enter        why is it waiting? every gate with its values'],
  ['p            pause or resume the tenant, after a question'],
  ['/            filter tenants by name; esc takes the filter away'],
  ['space        freeze and go on'],
  ['+ -          less and more often'],
  ['ctrl-l       draw anew'],
  ['q, ctrl-c    quit'],
]
