import type {
  AttachedRule,
  DeclaredSettings,
  LimitChange,
  LimitRule,
  LimitScope,
  SettingsPatch,
} from '../../src/store/settings.ts'
import type { Action, LessonStep } from './steps.ts'
import { changingClocks } from './zones.ts'

/**
 * What a whole run is about. Where everything is drawn at random, a quota that is fed while jobs of several costs wait for
 * it hardly ever comes together: such a run has many of one thing.
 */
export const focuses = [
  'all',
  'all',
  'quotas',
  'windows',
  'costs',
  'quotas and costs',
  'buckets',
  'strict shares',
] as const
export type Focus = (typeof focuses)[number]

const MS = 1_000
const SECOND = 1_000_000
const HOUR = 3_600 * SECOND
const none = { queue: [], high: [], normal: [], low: [], tenant: [] }

export function focusSettings(focus: Focus, settings: DeclaredSettings): DeclaredSettings {
  if (focus === 'all') return settings
  if (focus.includes('quotas')) return { ...settings, limits: oneQuota(settings) }
  if (focus === 'buckets') return { ...settings, limits: buckets(settings) }
  if (focus === 'strict shares') return strictly(settings)
  if (focus === 'windows') return { ...settings, limits: windows(settings) }
  return { ...settings, limits: { ...settings.limits, tenant: [saving] } }
}

/** Jobs that cost more than its burst are saved up for. */
const saving: LimitRule = { name: 'tenant', kind: 'bucket', count: 10, window: SECOND, burst: 1, jitter: 50 * MS }

/** A long one, over the end of which clocks are put back, beside one that ends while jobs of it run. */
function windows({ values }: DeclaredSettings): DeclaredSettings['limits'] {
  const long = {
    kind: 'window',
    count: 40,
    window: 6 * HOUR,
    offset: HOUR,
    jitter: 50 * MS,
    zones: changingClocks,
  } as const
  const short = { kind: 'window', count: 4, window: 2 * SECOND, offset: 300 * MS, jitter: 50 * MS } as const
  const [queue, tenant] = values.strict === 1 ? [long, short] : [short, long]
  return { ...none, queue: [{ name: 'queue', ...queue }], tenant: [{ name: 'tenant', ...tenant }] }
}

/** One, of the queue or of every tenant: of several that must all be known first, hardly any job would come through. */
function oneQuota({ values }: DeclaredSettings): DeclaredSettings['limits'] {
  const scope = values.max_wait === 0 ? 'queue' : 'tenant'
  const chosen = quotas[(values.quantum + values.max_stalls) % quotas.length] as object
  return { ...none, [scope]: [{ name: scope, kind: 'quota', ...chosen }] }
}

/** Fast ones, of the queue and of every tenant: some that save up, and one that jobs come back to in the same second. */
function buckets({ values }: DeclaredSettings): DeclaredSettings['limits'] {
  const tenant = { kind: 'bucket', count: 20, window: SECOND, burst: values.quantum, jitter: 50 * MS } as const
  const queue = { kind: 'bucket', count: 100, window: HOUR, burst: 8 * values.max_stalls, jitter: 50 * MS } as const
  return { ...none, queue: [{ name: 'queue', ...queue }], tenant: [{ name: 'tenant', ...tenant }] }
}

/** Of a limit that does not divide by the tenants there are. */
function strictly({ values, ...settings }: DeclaredSettings): DeclaredSettings {
  const count = 5 + 3 * values.quantum
  const chosen =
    values.max_wait === 0
      ? { kind: 'bucket', count: 4 * count, window: 10 * SECOND, burst: count, jitter: 50 * MS }
      : { kind: 'window', count, window: 10 * SECOND, offset: 0, jitter: 50 * MS }
  const limits = { ...none, queue: [{ name: 'queue', ...chosen } as AttachedRule] }
  return { ...settings, values: { ...values, strict: 1 }, limits }
}

export function focusAction(focus: Focus, action: Action): Action {
  if (focus === 'all') return action
  switch (action.do) {
    case 'submit':
      return focus.includes('costs') ? { ...action, lines: action.lines.map(priced) } : action
    case 'claim':
      if (focus === 'buckets') return pushedBack(late(action))
      if (focus === 'windows') return late(action)
      return focus.includes('quotas') ? { ...action, lesson: withReading(action) } : action
    case 'wait':
      return focus === 'windows' || focus === 'buckets' ? { ...action, us: stretched(focus, action.us) } : action
    case 'renew':
      if (!focus.includes('quotas')) return action
      return { do: 'admit', client: action.client, which: action.which[0] ?? 0, isZombie: false }
    case 'pause':
      return focus.includes('quotas') ? { do: 'settings', patch: switched(true) } : action
    case 'read job':
      return focus.includes('quotas') ? { do: 'settings', patch: switched(false) } : action
    case 'flush scripts':
    case 'crash':
      return focus === 'windows' ? { do: 'restart' } : action
    case 'watch action':
      return focus === 'windows' || focus === 'buckets' ? { do: 'come back' } : action
    case 'settings': {
      if (focus === 'strict shares') return { ...action, patch: { values: { quantum: 2 } } }
      if (!action.patch.limits) return action
      const limits = Object.entries(action.patch.limits).map(([scope, changes]) => [scope, changesOf(focus, changes)])
      return { ...action, patch: { ...action.patch, limits: Object.fromEntries(limits) as ChangesByScope } }
    }
    case 'declare':
      return { ...action, declared: focusSettings(focus, action.declared) }
    case 'tenant':
      if (!action.patch.limits) return action
      return { ...action, patch: { ...action.patch, limits: changesOf(focus, action.patch.limits) } }
    default:
      return action
  }
}

type Changes = Readonly<Record<string, LimitChange>>
type ChangesByScope = Readonly<Partial<Record<LimitScope, Changes>>>

function changesOf<Some extends Changes>(focus: Focus, changes: Some): Some {
  const turnedChanges = Object.entries(changes).map(([name, change]) => [
    name,
    change.kind === 'none' || change.kind === 'declared' ? change : turned(focus, change),
  ])
  return Object.fromEntries(turnedChanges) as Some
}

const quotas = [
  { threshold: 0 },
  { threshold: 2, members: ['x', 'y'] },
  { threshold: 5 },
  { threshold: 2, members: ['y', 'z'] },
]

/** Another rule of the same name; slots stay, so that there are both. */
function turned(focus: Focus, rule: AttachedRule): AttachedRule {
  const { name } = rule
  if (rule.kind !== 'bucket' && rule.kind !== 'window') return rule
  if (focus.includes('quotas'))
    return { name, kind: 'quota', ...(quotas[rule.count % quotas.length] as object) } as LimitRule
  if (focus === 'windows' && rule.kind === 'bucket') {
    return { name, kind: 'window', count: 3 + (rule.count % 7), window: rule.window, offset: 300 * MS, jitter: 50 * MS }
  }
  return rule
}

const costs = [1, 1, 2, 3, 1, 5, 9]

function priced<Line extends { readonly jobs: readonly { readonly id: number; readonly cost: number }[] }>(
  line: Line,
): Line {
  return { ...line, jobs: line.jobs.map((job) => ({ ...job, cost: costs[job.id % costs.length] })) }
}

/** Upstreams tell with every answer what is left, often too little and not for long. */
function withReading({ lesson, finished }: Action & { do: 'claim' }): LessonStep | null {
  const { which } = finished[0] ?? {}
  if (which === undefined || lesson?.reading) return lesson
  const reading = {
    remaining: [40, 2, 6, 0, 15][which % 5] as number,
    resetInMs: [60_000, 2_000, 400, 0][Math.floor(which / 5) % 4] as number,
    limit: [10, undefined, 60][which % 3],
  }
  return { upstream: '', pushback: lesson?.pushback ?? null, reading }
}

/** Every second job was granted too late. */
function late(action: Action & { do: 'claim' }): Action & { do: 'claim' } {
  const finished = action.finished.map((each) =>
    each.which % 2 === 0 ? { ...each, finish: { outcome: 'returned' } as const } : each,
  )
  return { ...action, finished }
}

/** Every third upstream does, and says nothing else. */
function pushedBack(action: Action & { do: 'claim' }): Action {
  const lesson = { upstream: '', pushback: { retryAfterMs: undefined }, reading: null }
  return { ...action, lesson: action.wanted % 3 === 0 ? lesson : null }
}

/** Some windows are hours long, and stale grants are judged after ten seconds. */
function stretched(focus: 'windows' | 'buckets', us: number): number {
  if (us < 100 * MS || us > 4 * SECOND) return us
  if (focus === 'buckets') return us * 4
  return us % 2 === 0 ? us * 2_400 : us
}

/** The quota is taken off, and put back: what ends meanwhile it does not hear of. */
function switched(isOff: boolean): SettingsPatch {
  const change = (name: string) => ({ kind: isOff ? ('none' as const) : ('declared' as const), name })
  return { limits: { queue: { queue: change('queue') }, tenant: { tenant: change('tenant') } } }
}
