import { didYouMean, type Report } from '../assert.ts'
import type { Level } from '../store/names.ts'
import { levels } from '../store/names.ts'
import type { AttachedRule, LimitRules, LimitScope } from '../store/settings.ts'
import { isDefinition, type LimitDefinition, parseLimit } from './definition.ts'
import { isShared, type Shared } from './shared.ts'

/** One limit, which gets the name of what it is attached to (a shared one keeps its own), or several by name. */
export type LimitsOf = LimitDefinition | Readonly<Record<string, LimitDefinition>>

/** The same where shared limits can be attached too: the queue and its levels. */
export type SharedLimitsOf = LimitDefinition | Shared | Readonly<Record<string, LimitDefinition | Shared>>

/**
 * What limits attach to. A job must be granted by all it stands under: the queue's, its level's and its tenant's.
 * Any other name is a limit of that name on the queue, unless it is a level's or nearly one of these three.
 */
export interface LimitsOption {
  readonly queue?: SharedLimitsOf
  /** A template: every tenant has its own of these. */
  readonly tenant?: LimitsOf
  readonly levels?: Readonly<Partial<Record<Level, SharedLimitsOf>>>
  readonly [name: string]: SharedLimitsOf | Readonly<Partial<Record<Level, SharedLimitsOf>>> | undefined
}

const scopes = ['queue', 'tenant', 'levels']
const namePattern = /^[A-Za-z0-9_-]{1,64}$/

type Attached = Record<LimitScope, AttachedRule[]>

/** Reports what is wrong; answers the rules by what they are attached to. */
export function attachLimits(limits: unknown, path: string, report: Report): LimitRules {
  const rules: Attached = { queue: [], high: [], normal: [], low: [], tenant: [] }
  if (limits === undefined) return rules
  if (typeof limits !== 'object' || limits === null || Array.isArray(limits)) {
    report(path, 'must be an object such as { queue: "500/s", tenant: "50/s" }')
    return rules
  }
  for (const [name, value] of Object.entries(limits)) {
    if (value === undefined) continue
    if (name === 'levels') attachLevels(value, `${path}.levels`, rules, report)
    else if (name === 'tenant') attach('tenant', 'tenant', value, `${path}.tenant`, rules, report)
    else if (name === 'queue') attach('queue', 'queue', value, `${path}.queue`, rules, report)
    else attachNamed(name, value, `${path}.${name}`, rules, report)
  }
  return rules
}

/** A limit on the queue by a name of its own, which must not look as if it were for a tenant or a level. */
function attachNamed(name: string, value: unknown, path: string, rules: Attached, report: Report): void {
  const hint = didYouMean(name, scopes)
  const ownName = `A limit of this name on the queue is { queue: { ${name}: … } }`
  if (levels.includes(name as Level)) report(path, `is a level: { levels: { ${name}: … } }. ${ownName}`)
  else if (hint) report(path, `is not what limits attach to${hint} ${ownName}`)
  else attachOne('queue', name, value, path, rules, report)
}

function attachLevels(value: unknown, path: string, rules: Attached, report: Report): void {
  if (typeof value !== 'object' || value === null) {
    report(path, "must be an object such as { low: '10/s' }")
    return
  }
  for (const [level, limits] of Object.entries(value)) {
    if (levels.includes(level as Level)) attach(level as Level, level, limits, `${path}.${level}`, rules, report)
    else report(`${path}.${level}`, 'is not a level; the levels are high, normal and low')
  }
}

function attach(
  scope: LimitScope,
  defaultName: string,
  value: unknown,
  path: string,
  rules: Attached,
  report: Report,
): void {
  if (isShared(value)) {
    attachOne(scope, value.name, value, path, rules, report)
    return
  }
  if (isDefinition(value) || typeof value !== 'object' || value === null) {
    attachOne(scope, defaultName, value, path, rules, report)
    return
  }
  for (const [name, definition] of Object.entries(value)) {
    attachOne(scope, name, definition, `${path}.${name}`, rules, report)
  }
}

function attachOne(
  scope: LimitScope,
  name: string,
  definition: unknown,
  path: string,
  rules: Attached,
  report: Report,
): void {
  if (!namePattern.test(name)) {
    report(path, 'is not a name for a limit: letters, digits, _ and - only, at most 64')
    return
  }
  if (rules[scope].some((rule) => rule.name === name)) {
    report(path, 'is given twice: a limit on the queue has this name already')
    return
  }
  if (isShared(definition)) {
    attachShared(scope, name, definition, path, rules, report)
    return
  }
  try {
    rules[scope].push(parseLimit(name, definition))
  } catch (error) {
    report(path, (error as Error).message)
  }
}

/** One script charges it once for a job, whatever it is called: in a queue it has one name, and none twice for a job. */
function attachShared(
  scope: LimitScope,
  name: string,
  { name: limit }: Shared,
  path: string,
  rules: Attached,
  report: Report,
): void {
  if (scope === 'tenant') {
    report(path, `cannot be the shared limit "${limit}": each tenant has its own. Attach it to the queue or a level`)
    return
  }
  const isSame = (rule: AttachedRule) => rule.kind === 'shared' && rule.limit === limit
  const others = (['queue', ...levels] as const).filter((each) => rules[each].some(isSame))
  if (others.includes('queue') || others.includes(scope) || (scope === 'queue' && others.length > 0)) {
    report(path, `is the shared limit "${limit}" again: a job would be charged twice. Attach it once`)
  } else if (others.some((each) => rules[each].some((rule) => isSame(rule) && rule.name !== name))) {
    report(path, `is the shared limit "${limit}" under a second name: give it the same name on each level`)
  } else {
    rules[scope].push({ name, kind: 'shared', limit })
  }
}
