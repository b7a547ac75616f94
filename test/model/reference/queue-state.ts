import { actionOfLane, type Level, levels } from '../../../src/store/names.ts'
import type { DeclaredSettings, LimitRule, LimitScope, SettingValues } from '../../../src/store/settings.ts'
import { closeActions } from './acting.ts'
import type { Action } from './action.ts'
import type { JitterState, Restarts } from './bucket.ts'
import { type ChangedLimits, compileLimits } from './compiled-limits.ts'
import { endStatistics, newPace } from './congestion.ts'
import type { OpenLimit } from './open-limit.ts'
import { isDefaultLane, type Job, remaining, Tenant } from './tenant.ts'

export interface Lease {
  readonly fence: string
  readonly client: string
  until: number
  readonly jobs: Job[]
}

/** What lasts only as long as one script. */
interface Script {
  readonly opened: Map<string, OpenLimit>
  readonly openedJitters: Map<string, JitterState>
  /** Tenants in line or parked when it began. */
  active: number
  /** Jobs that ran when it began. */
  readonly ran: readonly { readonly tenant: string; readonly standing: Level }[]
  marksAdded: number
  lettersAdded: number
  /** Actions it came upon, those it changed and those it ended. */
  readonly met: Set<Action>
  readonly changed: Set<Action>
  readonly over: Set<Action>
  /** Jobs it put in front of their lanes. */
  readonly broughtBack: Set<Job>
}

function newScript(jobs: readonly Job[]): Script {
  const running = jobs.filter(({ state }) => state === 'running')
  return {
    ran: running.map(({ tenant, standing }) => ({ tenant, standing })),
    opened: new Map(),
    openedJitters: new Map(),
    active: 1,
    marksAdded: 0,
    lettersAdded: 0,
    met: new Set(),
    changed: new Set(),
    over: new Set(),
    broughtBack: new Set(),
  }
}

/** Everything there is in the queue: plain arrays, every question answered by looking at all of them. */
export class QueueState {
  now = 0
  server = 'server-1'
  /** Starts with the queue, so that no job has a lower number than when that was made. */
  clock: number
  fence = 0
  turns = 0
  restarts: Restarts = { count: 0, lastAt: 0 }
  /** The server that granted last. */
  knownServer = 'server-1'
  readonly paused: Record<Level | 'queue', number> = { queue: 0, high: 0, normal: 0, low: 0 }
  readonly resumed: Record<Level | 'queue', number> = { queue: 0, high: 0, normal: 0, low: 0 }
  readonly virtual: Record<Level, number> = { high: 0, normal: 0, low: 0 }
  readonly weights: Record<Level, number> = { high: 0, normal: 0, low: 0 }
  /** The place of the tenant that came into line last. */
  readonly entry: Record<Level, number> = { high: 0, normal: 0, low: 0 }
  /** The clock when the round began. */
  readonly round: Record<Level, number> = { high: 0, normal: 0, low: 0 }
  /** How far the rounds have come: thousandths of a job of a tenant of weight 1. */
  readonly reached: Record<Level, number> = { high: 0, normal: 0, low: 0 }
  readonly pace = newPace()
  /** Jobs that were ever started. */
  started = 0
  snapshotDue = 0
  readonly tenants: Tenant[] = []
  readonly jobs: Job[] = []
  leases: Lease[] = []
  /** What the limits of the queue and its levels count, as it is stored. */
  readonly meters = new Map<string, string>()
  /** Some job has cost more than one permit. */
  hasCosts = false
  readonly jitters = new Map<string, JitterState>()
  readonly ids = new Map<string, { period: number; job: Job }>()
  readonly actions: Action[] = []
  /** `<tenant>:<name>` of all, and of some that are forgotten → when it was made. */
  readonly listed = new Map<string, number>()
  /** Types that have an aggregate of their own. */
  readonly aggregated: ReadonlySet<string> = new Set(['A'])
  /** What is to be done besides jobs → when it may be taken. */
  readonly duties = new Map<string, number>()
  readonly dutyTries = new Map<string, number>()
  /** Jobs that stood in front of a lane that was dropped, until they are freed. */
  readonly trash = new Map<string, Job[]>()
  /** What happened, one line each. */
  readonly events: string[] = []
  readonly counted: Record<string, number> = {}
  declared: DeclaredSettings
  /** What operators changed of it while running. */
  changedValues: Partial<SettingValues> = {}
  readonly changedLimits: ChangedLimits = {}
  values: SettingValues
  limits: Record<LimitScope, LimitRule[]>
  /** What the script under way has opened and added. */
  script = newScript([])

  constructor(declared: DeclaredSettings, now: number) {
    this.declared = declared
    this.values = declared.values
    this.limits = compileLimits(declared.limits, {})
    this.now = now
    this.clock = now - 1
  }

  tenant(name: string): Tenant {
    const found = this.tenants.find((tenant) => tenant.name === name)
    if (found) return found
    const tenant = new Tenant(name)
    this.tenants.push(tenant)
    return tenant
  }

  action(tenant: string, name: string): Action | undefined {
    return this.actions.find((action) => action.tenant === tenant && action.name === name)
  }

  jobsOf(name: string, state: Job['state']): Job[] {
    return this.jobs.filter((job) => job.tenant === name && job.state === state)
  }

  lease(fence: string): Lease | undefined {
    return this.leases.find((lease) => lease.fence === fence)
  }

  /** Nothing waits, nothing is to come, and no lane is still waited for. What runs is counted apart. */
  isIdle({ name, lanes, turns }: Tenant): boolean {
    const isNext = (job: Job): boolean => job.tenant === name && (job.state === 'waiting' || job.state === 'delayed')
    const isInLine = levels.some((level) => turns[level].length > 0)
    return !isInLine && !this.jobs.some(isNext) && lanes.every((lane) => remaining(lane) === 0)
  }

  pendingOf({ name }: Tenant): number {
    const isPending = ({ state }: Job): boolean => state === 'waiting' || state === 'delayed' || state === 'running'
    return this.jobs.filter((job) => job.tenant === name && isPending(job)).length
  }

  count(name: string, amount = 1): void {
    this.counted[name] = (this.counted[name] ?? 0) + amount
  }

  /** Never goes back, and never says the same twice. */
  tick(step = 1): number {
    this.clock = Math.max(this.clock + step, this.now)
    return this.clock
  }

  nextFence(): number {
    this.fence = Math.max(this.fence + 1, this.now)
    return this.fence
  }

  /** Limits are opened at the first question a script asks of them. */
  begin(now: number): void {
    this.now = now
    this.script = newScript(this.jobs)
    for (const tenant of this.tenants) {
      tenant.hasGrown = false
      tenant.isPacedAnew = false
    }
  }

  /** An empty named lane is forgotten, and its numbers are never given again. An action keeps its own. */
  end(): void {
    closeActions(this)
    endStatistics(this)
    for (const tenant of this.tenants) {
      for (const lane of [...tenant.lanes]) {
        if (actionOfLane(lane.token) !== undefined) continue
        if (isDefaultLane(lane) || remaining(lane) > 0 || lane.busy) continue
        this.clock = Math.max(this.clock, lane.next ?? 0)
        tenant.lanes.splice(tenant.lanes.indexOf(lane), 1)
      }
    }
  }
}
