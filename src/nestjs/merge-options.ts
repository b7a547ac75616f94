import type { RegisteredQueueOptions, SluiceModuleOptions } from './module-options.ts'

type Section = Readonly<Record<string, unknown>>

/** Options that hold options: these are merged, while anything else is taken whole from the one or the other. */
const sections = ['limits', 'limits.levels', 'congestion', 'audit']

/** A queue's options over the defaults, section by section. */
export function mergeOptions(
  defaults: SluiceModuleOptions['defaults'],
  own: RegisteredQueueOptions,
): RegisteredQueueOptions {
  const merged = mergeSections({ ...defaults?.queue }, { ...own }, '') as RegisteredQueueOptions
  const middleware = [...(defaults?.middleware ?? []), ...(own.middleware ?? [])]
  return { ...merged, middleware }
}

function mergeSections(defaults: Section, own: Section, path: string): Section {
  const merged: Record<string, unknown> = { ...defaults }
  for (const [name, value] of Object.entries(own)) {
    // As a missing variable of a config service comes: not given.
    if (value === undefined) continue
    const known = merged[name]
    const isMerged = sections.includes(path + name) && isSection(known) && isSection(value)
    merged[name] = isMerged ? mergeSections(known, value, `${path}${name}.`) : value
  }
  return merged
}

function isSection(value: unknown): value is Section {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
