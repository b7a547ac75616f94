import type { Report, Rule } from '../assert.ts'
import { queueRules } from '../engine/queue-options.ts'
import { attachLimits } from '../limits/attachment.ts'
import type { AttachedRule, BucketRule, LimitRule, WindowRule } from '../store/settings.ts'
import type { SchedulerLimits } from './scheduler/virtual-queue.ts'

/** The limits of a plan: those of a queue, without what only upstreams and time can teach them. */

type Limits = readonly LimitRule[]

export const queueLimits: Rule<Readonly<Record<keyof SchedulerLimits | 'tenant', Limits>>> = (value, path, report) => {
  const { rules } = queueRules.limits(value, path, report)
  const at = (scope: keyof typeof rules) => simulated(rules[scope], path, report)
  return { queue: at('queue'), high: at('high'), normal: at('normal'), low: at('low'), tenant: at('tenant') }
}

export const tenantLimits: Rule<Limits> = (value, path, report) => {
  if (value === undefined) return []
  const inPlan: Report = (at, problem) => report(path + at.slice('limits.tenant'.length), problem)
  return simulated(attachLimits({ tenant: value }, 'limits', inPlan).tenant, path, report)
}

/** A quota is what an upstream says is left, and here is none. */
function simulated(rules: readonly AttachedRule[], path: string, report: Report): Limits {
  const limits = rules.filter((rule): rule is LimitRule => rule.kind !== 'shared')
  for (const { kind, name } of limits) {
    if (kind !== 'quota') continue
    const window = '{"kind":"window","limit":5000,"windowMs":3600000}'
    report(path, `has the quota "${name}", which only an upstream knows: give what it allows as a window, ${window}`)
  }
  return limits
}

/** The template, with a tenant's own in place of those of the same name and after the others: as limits.lua has them. */
export function limitsOfTenant(template: Limits, own: Limits): Limits {
  const chosen = template.map((rule) => {
    const mine = own.find(({ name }) => name === rule.name)
    return mine ? besideTemplate(mine, rule) : rule
  })
  return [...chosen, ...own.filter(({ name }) => !template.some((rule) => rule.name === name))]
}

const SECOND = 1_000_000

/** All tenants' limits of one name have one jitter: the template's, unless their own is wider. As jitter.lua has it. */
function besideTemplate(own: LimitRule, template: LimitRule): LimitRule {
  if (!hasJitter(own) || !hasJitter(template)) return own
  const room = own.kind === 'window' ? Math.floor(own.window / 2) : own.window
  const widest = Math.min(SECOND, Math.max(room, own.jitter))
  return { ...own, jitter: Math.min(Math.max(own.jitter, template.jitter), widest) }
}

/**
 * Where there is no template for a name, the queue goes by the jitter of whoever was asked first, and narrows it in calm
 * minutes: which one it has is a matter of history. So limits of one name must agree.
 */
export class Jitters {
  readonly #template: Limits
  /** In µs. */
  readonly #byName = new Map<string, number>()

  constructor(template: Limits) {
    this.#template = template
  }

  /** @param own - Of one tenant. */
  check(own: Limits, report: (problem: string) => void): void {
    for (const rule of own) {
      if (!hasJitter(rule)) continue
      const { name, jitter } = rule
      if (this.#template.some((other) => other.name === name && hasJitter(other))) continue
      const other = this.#byName.get(name) ?? jitter
      this.#byName.set(name, other)
      if (other === jitter) continue
      report(
        `has a "${name}" with a jitterMs of ${jitter / 1000}, and an earlier tenant's has ${other / 1000}: a queue keeps one ` +
          'for all limits of a name. Give both the same, or one of them another name',
      )
    }
  }
}

function hasJitter(rule: LimitRule): rule is BucketRule | WindowRule {
  return rule.kind === 'bucket' || rule.kind === 'window'
}
