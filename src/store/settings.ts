/** What a queue's scripts go by, as it travels to the store: times in µs, names as the scripts have them. */

export interface BucketRule {
  readonly name: string
  readonly kind: 'bucket'
  readonly count: number
  readonly window: number
  readonly burst: number
  readonly jitter: number
}

export interface WindowRule {
  readonly name: string
  readonly kind: 'window'
  readonly count: number
  readonly window: number
  /** By how much later than a multiple of the window it begins, on the clock of the zone. */
  readonly offset: number
  readonly jitter: number
  /** Pairs of an instant and what its zone adds to UTC from then on, in seconds; without: UTC. */
  readonly zones?: readonly number[]
}

export interface QuotaRule {
  readonly name: string
  readonly kind: 'quota'
  readonly threshold: number
  /** Of a pool. */
  readonly members?: readonly string[]
}

export interface ConcurrencyRule {
  readonly name: string
  readonly kind: 'concurrency'
  readonly max: number
}

export type LimitRule = BucketRule | WindowRule | QuotaRule | ConcurrencyRule

/** In place of the rule of a limit that is shared: the rule itself is the group's. */
interface SharedRule {
  /** What this queue calls it. */
  readonly name: string
  readonly kind: 'shared'
  /** What the group calls it. */
  readonly limit: string
}

export type AttachedRule = LimitRule | SharedRule

export const limitScopes = ['queue', 'high', 'normal', 'low', 'tenant'] as const
export type LimitScope = (typeof limitScopes)[number]

export type LimitRules = Readonly<Record<LimitScope, readonly AttachedRule[]>>

export interface SettingValues {
  /** 1: no tenant gets more than an equal part of the queue's limits. */
  readonly strict: number
  readonly max_close: number
  readonly quantum: number
  readonly alpha: number
  readonly max_progress: number
  /** 0: the starvation guard is off. */
  readonly max_wait: number
  readonly max_stalls: number
  /** 0: without a bound. */
  readonly max_pending: number
  readonly max_pending_tenant: number
  readonly keep_ids: number
  readonly keep_dead: number
  readonly keep_actions: number
  readonly keep_results: number
  readonly keep_events: number
  readonly max_events: number
  /** Whether a job that an upstream pushed back waits by its tenant's backlog. */
  readonly congestion: boolean
  readonly base_backoff: number
  readonly max_backoff: number
  /** Between two records of congestion, and how long they are kept. */
  readonly snapshot: number
  readonly keep_history: number
}

/** What a process declares when it registers a queue. */
export interface Declaration {
  /** All of them: those that are not given are the defaults, for a store in which nobody has given them. */
  readonly values: SettingValues
  /** Names of the values that are given; the others stay as they were declared before. */
  readonly given: Readonly<Partial<Record<keyof SettingValues, true>>>
  /** Undefined: they stay as well. */
  readonly limits?: LimitRules
  /** Rules of the shared limits among them, by the group's names. */
  readonly shared?: Readonly<Record<string, LimitRule>>
}

/** What a queue stands under by what is declared. */
export type DeclaredSettings = Required<Pick<Declaration, 'values' | 'limits'>> & Pick<Declaration, 'shared'>

/** A rule in place of the declared one; `none`: no such limit; `declared`: as the code says. */
export type LimitChange = AttachedRule | { readonly kind: 'none' } | { readonly kind: 'declared' }

export interface SettingsPatch {
  readonly values?: Partial<SettingValues>
  readonly limits?: Readonly<Partial<Record<LimitScope, Readonly<Record<string, LimitChange>>>>>
}
