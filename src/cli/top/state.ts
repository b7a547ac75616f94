import { congestionLevels } from '../../engine/congestion.ts'
import type { TenantOverview } from '../../index.ts'

type View = 'tenants' | 'limits' | 'workers'

export const sorts = ['backlog', 'rate', 'wait', 'congestion', 'name'] as const
export type Sort = (typeof sorts)[number]

/** What a person has chosen to see, and what is being asked. */
export interface TopState {
  readonly view: View
  readonly sort: Sort
  /** The other way round than the order that is asked for mostly: most first, names from A. */
  readonly isReversed: boolean
  readonly filter: string
  readonly isTyping: boolean
  /** By its name, so that the mark stays with it when others overtake it. */
  readonly selected: string | undefined
  /** What `y` does. */
  readonly question: { readonly tenant: string; readonly isPausing: boolean } | undefined
  readonly isHelping: boolean
  /** Lines shown instead of the table, until a key is pressed. */
  readonly note: { readonly title: string; readonly lines: readonly string[] } | undefined
  readonly isFrozen: boolean
  /** Said at the bottom until the next key. */
  readonly message: string | undefined
}

export const firstState: TopState = {
  view: 'tenants',
  sort: 'backlog',
  isReversed: false,
  filter: '',
  isTyping: false,
  selected: undefined,
  question: undefined,
  isHelping: false,
  note: undefined,
  isFrozen: false,
  message: undefined,
}

const orders: Readonly<Record<Sort, (a: TenantOverview, b: TenantOverview) => number>> = {
  backlog: (a, b) => b.waiting - a.waiting,
  rate: (a, b) => b.speed - a.speed,
  wait: (a, b) => b.etaMs - a.etaMs,
  congestion: (a, b) => congestionLevels.indexOf(b.level) - congestionLevels.indexOf(a.level),
  name: (a, b) => a.tenant.localeCompare(b.tenant),
}

/** Those that fit the filter, in the order that was chosen. */
export function shownTenants(
  tenants: readonly TenantOverview[],
  { sort, isReversed, filter }: Pick<TopState, 'sort' | 'isReversed' | 'filter'>,
): readonly TenantOverview[] {
  const wanted = filter.toLowerCase()
  const order = orders[sort]
  const sign = isReversed ? -1 : 1
  return tenants
    .filter(({ tenant }) => tenant.toLowerCase().includes(wanted))
    .toSorted((a, b) => sign * order(a, b) || a.tenant.localeCompare(b.tenant))
}

/** A key as it was pressed: a letter, or its name. */
export interface Key {
  /** What it writes; empty for a key that writes nothing. */
  readonly text: string
  /** `up`, `return`, `escape`, … */
  readonly name: string
  readonly isControl: boolean
}

/** What a key asks for that the state alone cannot do. */
export type Wish =
  | 'quit'
  | 'interrupt'
  | 'suspend'
  | 'redraw'
  | 'refresh'
  | 'next-queue'
  | 'pause'
  | 'explain'
  | 'slower'
  | 'faster'

const sortKeys: Readonly<Record<string, Sort>> = { b: 'backlog', r: 'rate', w: 'wait', c: 'congestion', n: 'name' }
const viewKeys: Readonly<Record<string, View>> = { '1': 'tenants', '2': 'limits', '3': 'workers' }
const PAGE = 10

/** What pressing a key changes. @param shown - Tenants as they stand on the screen. */
export function press(state: TopState, key: Key, shown: readonly TenantOverview[]): { state: TopState; wish?: Wish } {
  if (key.isControl) return { state, ...controlWish(key) }
  if (state.isTyping) return { state: typed(state, key) }
  const calm: TopState = { ...state, message: undefined }
  if (state.question) {
    if (key.text === 'y') return { state: calm, wish: 'pause' }
    return { state: { ...calm, question: undefined, message: 'Nothing was changed.' } }
  }
  if (state.isHelping || state.note) {
    const closed = { ...calm, isHelping: false, note: undefined }
    return key.text === 'q' ? { state: closed, wish: 'quit' } : { state: closed }
  }
  return pressFreely(calm, key, shown)
}

function controlWish({ name }: Key): { wish?: Wish } {
  if (name === 'c') return { wish: 'interrupt' }
  if (name === 'z') return { wish: 'suspend' }
  return name === 'l' ? { wish: 'redraw' } : {}
}

/** While a filter is typed every letter belongs to it. */
function typed(state: TopState, { name, text }: Key): TopState {
  if (name === 'return') return { ...state, isTyping: false }
  if (name === 'escape') return { ...state, isTyping: false, filter: '' }
  if (name === 'backspace') return { ...state, filter: [...state.filter].slice(0, -1).join('') }
  return /^\P{C}+$/u.test(text) ? { ...state, filter: state.filter + text } : state
}

function pressFreely(state: TopState, { name, text }: Key, shown: readonly TenantOverview[]) {
  const sort = sortKeys[text]
  if (sort) return { state: { ...state, sort, isReversed: state.sort === sort ? !state.isReversed : false } }
  const view = viewKeys[text]
  if (view) return { state: { ...state, view } }
  const moved = movedBy(name, text)
  if (moved !== undefined) return { state: { ...state, selected: neighbour(shown, state.selected, moved) } }
  switch (text) {
    case 'q':
      return { state, wish: 'quit' as const }
    case '?':
    case 'h':
      return { state: { ...state, isHelping: true } }
    case '/':
      return { state: { ...state, isTyping: true, view: 'tenants' as const } }
    case ' ':
      return { state: { ...state, isFrozen: !state.isFrozen }, wish: 'refresh' as const }
    case '+':
      return { state, wish: 'slower' as const }
    case '-':
      return { state, wish: 'faster' as const }
    case 'p':
      return { state: askToPause(state, shown) }
  }
  if (name === 'tab') return { state: { ...state, selected: undefined }, wish: 'next-queue' as const }
  if (name === 'return') return state.selected === undefined ? { state } : { state, wish: 'explain' as const }
  if (name === 'escape') return { state: { ...state, filter: '', selected: undefined } }
  return { state }
}

function movedBy(name: string, text: string): number | undefined {
  const steps: Readonly<Record<string, number>> = {
    up: -1,
    down: 1,
    pageup: -PAGE,
    pagedown: PAGE,
    home: Number.NEGATIVE_INFINITY,
    end: Number.POSITIVE_INFINITY,
  }
  return text === 'k' ? -1 : text === 'j' ? 1 : steps[name]
}

function neighbour(shown: readonly TenantOverview[], selected: string | undefined, by: number): string | undefined {
  const at = shown.findIndex(({ tenant }) => tenant === selected)
  const from = at === -1 && by > 0 ? -1 : at
  return shown[Math.max(0, Math.min(shown.length - 1, from + by))]?.tenant
}

function askToPause(state: TopState, shown: readonly TenantOverview[]): TopState {
  const tenant = shown.find(({ tenant: name }) => name === state.selected)
  if (!tenant || state.view !== 'tenants') return { ...state, message: 'Choose a tenant first, with the arrow keys.' }
  return { ...state, question: { tenant: tenant.tenant, isPausing: tenant.state !== 'paused' } }
}
