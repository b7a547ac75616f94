import type { Declaration, DeclaredSettings } from '../../src/store/settings.ts'

/** As a process declares it that gives every option. */
export function declareAll(declared: DeclaredSettings): Declaration {
  return { ...declared, given: Object.fromEntries(Object.keys(declared.values).map((name) => [name, true])) }
}
