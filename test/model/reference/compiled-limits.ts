import type { DeclaredSettings, LimitChange, LimitRule, LimitScope } from '../../../src/store/settings.ts'

export type ChangedLimits = Partial<Record<LimitScope, Record<string, LimitChange>>>

/** What the code declares, with what operators changed while running in its place, and after it what they added. */
export function compileLimits(
  declaredLimits: DeclaredSettings['limits'],
  changed: ChangedLimits,
): Record<LimitScope, LimitRule[]> {
  const compiled: Record<LimitScope, LimitRule[]> = { queue: [], high: [], normal: [], low: [], tenant: [] }
  for (const scope of ['queue', 'high', 'normal', 'low', 'tenant'] as const) {
    const changes = changed[scope] ?? {}
    const declared = declaredLimits[scope]
    const kept = declared.map((rule) => changes[rule.name] ?? rule)
    const added = Object.entries(changes)
      .filter(([name]) => !declared.some((rule) => rule.name === name))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, change]) => change)
    compiled[scope] = [...kept, ...added].filter(
      (rule): rule is LimitRule => rule.kind !== 'none' && rule.kind !== 'shared',
    )
  }
  return compiled
}
