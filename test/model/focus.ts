import type { AttachedRule, DeclaredSettings, LimitChange, LimitRule, LimitScope } from '../../src/store/settings.ts'
import type { Action, LessonStep } from './steps.ts'

/**
 * What a whole run is about. Where everything is drawn at random, a quota that is fed while jobs of several costs wait for
 * it hardly ever comes together: such a run has many of one thing.
 */
export const focuses = ['all', 'all', 'quotas', 'windows', 'costs', 'quotas and costs'] as const
export type Focus = (typeof focuses)[number]

export function focusSettings(focus: Focus, settings: DeclaredSettings): DeclaredSettings {
  if (focus === 'all') return settings
  if (focus.includes('quotas')) return { ...settings, limits: oneQuota(settings) }
  const limits = Object.entries(settings.limits).map(([scope, rules]) => [
    scope,
    rules.map((rule) => turned(focus, rule)),
  ])
  return { ...settings, limits: Object.fromEntries(limits) as DeclaredSettings['limits'] }
}

/** One, of the queue or of every tenant: of several that must all be known first, hardly any job would come through. */
function oneQuota({ values }: DeclaredSettings): DeclaredSettings['limits'] {
  const none = { queue: [], high: [], normal: [], low: [], tenant: [] }
  const scope = values.max_wait === 0 ? 'queue' : 'tenant'
  const chosen = quotas[(values.quantum + values.max_stalls) % quotas.length] as object
  return { ...none, [scope]: [{ name: scope, kind: 'quota', ...chosen }] }
}

export function focusAction(focus: Focus, action: Action): Action {
  if (focus === 'all') return action
  switch (action.do) {
    case 'submit':
      return focus.includes('costs') ? { ...action, lines: action.lines.map(priced) } : action
    case 'claim':
      return focus.includes('quotas') ? { ...action, lesson: withReading(action) } : action
    case 'settings': {
      if (!action.patch.limits) return action
      const limits = Object.entries(action.patch.limits).map(([scope, changes]) => [scope, changesOf(focus, changes)])
      return { ...action, patch: { ...action.patch, limits: Object.fromEntries(limits) as ChangesByScope } }
    }
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

const MS = 1_000
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

/** Upstreams tell with every answer what is left, mostly something. */
function withReading({ lesson, wanted, finished }: Action & { do: 'claim' }): LessonStep | null {
  if (finished.length === 0 || lesson?.reading) return lesson
  const reading = {
    remaining: 3 + 4 * wanted,
    resetInMs: wanted % 2 === 0 ? 2_000 : 60_000,
    limit: wanted % 3 === 2 ? 20 : undefined,
  }
  return { upstream: '', pushback: lesson?.pushback ?? null, reading }
}
