import type { LimitDefinition } from '../../src/index.ts'

/** What is scarce. The others leave room, so that it is known which limit has to be used up. */
export type Binding = 'queue' | 'tenants' | 'crowd' | 'day'

/** One setting of all limits. */
export interface StackedLimits {
  readonly binding: Binding
  /** Calls a second of the whole queue. */
  readonly queue: number
  /** Calls a second of each tenant. */
  readonly tenant: number
  /** Jobs in flight. */
  readonly crowd: number
  /** Calls of the whole queue in a day. */
  readonly day: number
}

const DAY_MS = 86_400_000
const PLENTY_A_DAY = 1_000_000

/** Which of them is scarce at random; the day only where it ends. */
const BINDINGS: readonly Binding[] = ['queue', 'tenants', 'crowd']

/**
 * A random setting in which one limit is scarce and the others leave half as much again at least: around a hundred calls
 * a second, whichever it is, so that two cores are never what is scarce.
 */
export function randomLimits(
  random: () => number,
  { tenants, holdMs, not }: { tenants: number; holdMs: number; not: Binding | undefined },
): StackedLimits {
  const between = (from: number, to: number) => from + Math.floor(random() * (to - from + 1))
  const choices = BINDINGS.filter((binding) => binding !== not)
  const binding = choices[between(0, choices.length - 1)] as Binding
  const perSecond = between(60, 160)
  const roomy = (scarce: number) => Math.ceil(scarce * (1.5 + random()))
  const inFlight = (perSecond * holdMs) / 1_000
  return {
    binding,
    queue: binding === 'queue' ? perSecond : roomy(perSecond),
    tenant: binding === 'tenants' ? Math.round(perSecond / tenants) : roomy(perSecond / tenants),
    crowd: binding === 'crowd' ? Math.round(inFlight) : roomy(inFlight),
    day: PLENTY_A_DAY,
  }
}

/** @param midnight - When a day begins, in ms since 1970. */
export function definitionsOf({ queue, tenant, crowd, day }: StackedLimits, midnight: number) {
  const bucket = (limit: number) => ({ kind: 'bucket', limit, windowMs: 1_000 }) satisfies LimitDefinition
  const offsetMs = midnight % DAY_MS
  return {
    queue: bucket(queue),
    tenant: bucket(tenant),
    crowd: { kind: 'concurrency', max: crowd } satisfies LimitDefinition,
    day: { kind: 'window', limit: day, windowMs: DAY_MS, offsetMs } satisfies LimitDefinition,
  }
}
