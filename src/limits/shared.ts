import type { LimitRule } from '../store/settings.ts'

/** What a queue has to know of a limit that is shared: `Sluice.limit` makes it. */
export interface Shared {
  readonly kind: 'shared'
  readonly name: string
  /** The hash tag under which its queues live. */
  readonly group: string
  /** As its code declares it. */
  readonly rule: LimitRule
  /** Resolves when the store knows it. */
  ready(): Promise<void>
}

export function isShared(value: unknown): value is Shared {
  return typeof value === 'object' && value !== null && (value as { kind?: unknown }).kind === 'shared'
}

/** All shared limits in an option `limits`, each once. */
export function sharedAmong(limits: unknown): Shared[] {
  const found = new Map<string, Shared>()
  const visit = (value: unknown, depth: number): void => {
    if (isShared(value)) found.set(value.name, value)
    else if (depth > 0 && typeof value === 'object' && value !== null) {
      for (const each of Object.values(value)) visit(each, depth - 1)
    }
  }
  // As deep as `limits.levels.low.upstream`.
  visit(limits, 3)
  return [...found.values()]
}

/** Undefined: they can be attached to one queue. */
export function problemOfGroups(shared: readonly Pick<Shared, 'name' | 'group'>[]): string | undefined {
  const groups = new Set(shared.map(({ group }) => group))
  if (groups.size < 2) return undefined
  const listed = shared.map(({ name, group }) => `"${name}" of group "${group}"`).join(', ')
  const [first] = groups
  return (
    `cannot be shared limits of different groups (${listed}): one script could not charge them together. ` +
    `Give them one group, for example sluice.limit(name, definition, { group: '${first}' })`
  )
}
