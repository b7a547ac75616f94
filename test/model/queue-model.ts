import { type Level, levels } from '../../src/store/names.ts'
import type { AdmitReply } from '../../src/store/scripts/admit-job.ts'
import type { CancelReply } from '../../src/store/scripts/cancel-job.ts'
import type { TenantPatch } from '../../src/store/scripts/change-tenant.ts'
import type { ClaimReply, ClaimRequest, FinishedJob } from '../../src/store/scripts/finish-and-claim.ts'
import type { QueueCounts } from '../../src/store/scripts/read-counts.ts'
import type { LimitRow } from '../../src/store/scripts/read-limits.ts'
import type { FoundTenant } from '../../src/store/scripts/read-tenant.ts'
import { entriesPerJob, type SubmitLine, type SubmitReply } from '../../src/store/scripts/submit-jobs.ts'
import type {
  DeclaredSettings,
  LimitChange,
  LimitRule,
  LimitScope,
  SettingsPatch,
  SettingValues,
} from '../../src/store/settings.ts'
import {
  type BucketRule,
  type BucketState,
  type JitterState,
  judgeJitter,
  NEVER,
  OpenBucket,
  openJitter,
} from './bucket-model.ts'
import {
  claimedTextOf,
  type History,
  isDefaultLane,
  isOrdered,
  isSuspect,
  type Job,
  type Lane,
  noHistory,
  remaining,
  type Stand,
  Tenant,
  textOf,
} from './tenant-model.ts'

const LOOKS = 64
const DUE_AT_ONCE = 64
const STALLED_AT_ONCE = 256
const GUARD_EVERY = 10
const OVERDUE_LOOKS = 4
const TRIMMED_AT_ONCE = 100
const FRESH_SHARE = 0.6
const LARGEST_REPLY = 1_000_000

interface Lease {
  readonly fence: string
  readonly client: string
  until: number
  readonly jobs: Job[]
}

/** A limit as one script sees it. */
type OpenLimit =
  | { readonly bucket: OpenBucket; readonly scope: LimitScope; readonly rule: BucketRule; save(): void }
  | { readonly bucket: undefined; readonly rule: LimitRule & { kind: 'concurrency' }; running(): number }

/** A claim while it is made. */
interface Claim {
  left: number
  looks: number
  bytesLeft: number
  hasSuspect: boolean
  isClosed: boolean
  waitUntil: number
  fence: number
  fresh: number | undefined
  readonly jobs: Job[]
  /** Tenants in line by level, and the waits of those that were there before the claim. */
  readonly lines: Record<Level, { name: string; score: number }[]>
  readonly since: Record<Level, { name: string; since: number }[]>
  readonly lookedAt: Record<Level, Set<string>>
  /** Whose place in the index of the overdue is too old. */
  readonly misplaced: Stand[]
}

export interface JobAnswer {
  readonly state: Job['state'] | 'unknown'
  readonly due: number | undefined
  readonly reason: string
  readonly text: string | undefined
}

/**
 * The queue as the specification has it, told what time it is: plain arrays, every question answered by looking at all
 * of them. It answers what the scripts must answer. Who is woken, and who holds the alarm, is not part of it.
 */
export class QueueModel {
  now = 0
  server = 'server-1'
  clock = 0
  fence = 0
  turns = 0
  restarts = { count: 0, lastAt: 0 }
  /** The server that granted last. */
  knownServer = 'server-1'
  readonly paused: Record<Level | 'queue', number> = { queue: 0, high: 0, normal: 0, low: 0 }
  readonly resumed: Record<Level | 'queue', number> = { queue: 0, high: 0, normal: 0, low: 0 }
  readonly virtual: Record<Level, number> = { high: 0, normal: 0, low: 0 }
  readonly weights: Record<Level, number> = { high: 0, normal: 0, low: 0 }
  readonly tenants: Tenant[] = []
  readonly jobs: Job[] = []
  leases: Lease[] = []
  readonly buckets = new Map<string, BucketState>()
  readonly jitters = new Map<string, JitterState>()
  readonly ids = new Map<string, { period: number; job: Job }>()
  readonly counted: Record<string, number> = {}
  readonly #declared: DeclaredSettings
  readonly #changedLimits: Partial<Record<LimitScope, Record<string, LimitChange>>> = {}
  values: SettingValues
  limits: Record<LimitScope, LimitRule[]>
  #opened = new Map<string, OpenLimit>()
  #openedJitters = new Map<string, JitterState>()
  #marksAdded = 0
  #lettersAdded = 0

  constructor(declared: DeclaredSettings, now: number) {
    this.#declared = declared
    this.values = declared.values
    this.limits = this.#compileLimits()
    this.now = now
  }

  // What everybody asks.

  tenant(name: string): Tenant {
    const found = this.tenants.find((tenant) => tenant.name === name)
    if (found) return found
    const tenant = new Tenant(name)
    this.tenants.push(tenant)
    return tenant
  }

  jobsOf(name: string, state: Job['state']): Job[] {
    return this.jobs.filter((job) => job.tenant === name && job.state === state)
  }

  job(key: string): Job | undefined {
    return this.jobs.find((job) => job.key === key)
  }

  lease(fence: string): Lease | undefined {
    return this.leases.find((lease) => lease.fence === fence)
  }

  /** Nothing waits and nothing is to come. What runs is counted apart. */
  isIdle({ name, lanes }: Tenant): boolean {
    const isNext = (job: Job): boolean => job.tenant === name && (job.state === 'waiting' || job.state === 'delayed')
    return !this.jobs.some(isNext) && lanes.every((lane) => remaining(lane) === 0)
  }

  pendingOf({ name }: Tenant): number {
    const isPending = ({ state }: Job): boolean => state === 'waiting' || state === 'delayed' || state === 'running'
    return this.jobs.filter((job) => job.tenant === name && isPending(job)).length
  }

  #count(name: string, amount = 1): void {
    this.counted[name] = (this.counted[name] ?? 0) + amount
  }

  /** Never goes back, and never says the same twice. */
  #tick(): number {
    this.clock = Math.max(this.clock + 1, this.now)
    return this.clock
  }

  #nextFence(): number {
    this.fence = Math.max(this.fence + 1, this.now)
    return this.fence
  }

  /** Limits are opened at the first question a script asks of them. */
  #begin(now: number): void {
    this.now = now
    this.#opened = new Map()
    this.#openedJitters = new Map()
    this.#marksAdded = 0
    this.#lettersAdded = 0
  }

  /** An empty named lane is forgotten, and its numbers are never given again. */
  #end(): void {
    for (const tenant of this.tenants) {
      for (const lane of [...tenant.lanes]) {
        if (isDefaultLane(lane) || remaining(lane) > 0 || lane.busy) continue
        this.clock = Math.max(this.clock, lane.next ?? 0)
        tenant.lanes.splice(tenant.lanes.indexOf(lane), 1)
      }
    }
  }

  /** Whoever adds a dead letter, or a mark on a cancelled job, takes away what is past its time. */
  #trim(): void {
    const past = (state: Job['state'], until: number): Job[] =>
      this.jobs
        .filter((job) => job.state === state && job.at <= until)
        .sort((a, b) => a.at - b.at || (a.key < b.key ? -1 : 1))
        .slice(0, TRIMMED_AT_ONCE)
    if (this.#lettersAdded > 0) {
      const expired = past('failed', this.now - this.values.keep_dead)
      for (const job of expired) job.state = 'forgotten'
      this.#count('deadLettersExpired', expired.length)
    }
    if (this.#marksAdded > 0) for (const job of past('canceled', this.now)) job.state = 'forgotten'
  }

  // Where a tenant stands.

  #newScore(tenant: Tenant): number {
    const { alpha, max_progress: most } = this.values
    let progress = 0
    if (alpha !== 0) {
      const left = this.pendingOf(tenant)
      progress = (alpha * 1000 * Math.max(0, tenant.total - left)) / Math.max(1, left)
      progress = Math.floor(Math.max(-most, Math.min(most, progress)))
    }
    return this.#tick() + tenant.base * 1000 + progress
  }

  #settle(tenant: Tenant): void {
    for (const level of levels) {
      const stand = tenant.stands[level]
      const hasWork = tenant.hasWork(level)
      if (tenant.isFree && hasWork) {
        if (!stand.present) this.#enter(tenant, stand, level)
        continue
      }
      if (stand.present) {
        if (hasWork) stand.kept = stand.score
        this.#leave(tenant, stand, level)
      }
      if (!hasWork) {
        stand.used = 0
        stand.kept = undefined
      }
    }
  }

  #enter(tenant: Tenant, stand: Stand, level: Level): void {
    stand.present = true
    stand.score = stand.kept ?? this.#newScore(tenant)
    stand.kept = undefined
    stand.since = this.now
    stand.indexedSince = this.now
    stand.virtual = this.virtual[level]
    this.weights[level] += tenant.share
  }

  #leave(tenant: Tenant, stand: Stand, level: Level): void {
    stand.present = false
    this.weights[level] = Math.max(0, this.weights[level] - tenant.share)
    this.#bookEntitlement(tenant, stand, level)
  }

  #bookEntitlement(tenant: Tenant, stand: Stand, level: Level): void {
    stand.entitled += Math.floor(tenant.weight * (this.virtual[level] - stand.virtual))
    stand.virtual = this.virtual[level]
  }

  #park(tenant: Tenant, until: number, limit: string): void {
    tenant.parking = { limit, until, isLifted: false }
    this.#settle(tenant)
    this.#count('parked')
  }

  #unpark(tenant: Tenant): void {
    if (!tenant.parking) return
    tenant.parking = undefined
    this.#settle(tenant)
  }

  #rebase(tenant: Tenant, base: number): void {
    const difference = (base - tenant.base) * 1000
    for (const level of levels) {
      const stand = tenant.stands[level]
      if (stand.present) stand.score += difference
      else if (stand.kept !== undefined) stand.kept += difference
    }
    tenant.base = base
  }

  #reweigh(tenant: Tenant, weight: number): void {
    const present = levels.filter((level) => tenant.stands[level].present)
    for (const level of present) {
      this.#bookEntitlement(tenant, tenant.stands[level], level)
      this.weights[level] -= tenant.share
    }
    tenant.weight = weight
    for (const level of present) this.weights[level] += tenant.share
  }

  // Limits.

  #compileLimits(): Record<LimitScope, LimitRule[]> {
    const compiled: Record<LimitScope, LimitRule[]> = { queue: [], high: [], normal: [], low: [], tenant: [] }
    for (const scope of ['queue', 'high', 'normal', 'low', 'tenant'] as const) {
      const changes = this.#changedLimits[scope] ?? {}
      const declared = this.#declared.limits[scope]
      const kept = declared.map((rule) => changes[rule.name] ?? rule)
      const added = Object.entries(changes)
        .filter(([name]) => !declared.some((rule) => rule.name === name))
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([, change]) => change)
      compiled[scope] = [...kept, ...added].filter((rule): rule is LimitRule => rule.kind !== 'none')
    }
    return compiled
  }

  #jitter(scope: LimitScope, rule: BucketRule): JitterState {
    const field = `${scope}/${rule.name}`
    let state = this.#openedJitters.get(field)
    if (!state) {
      state = openJitter(rule, this.jitters.get(field), this.now)
      this.#openedJitters.set(field, state)
    }
    return state
  }

  #open(scope: LimitScope, rule: LimitRule, id: string, store: Map<string, BucketState>, field: string): OpenLimit {
    const found = this.#opened.get(id)
    if (found) return found
    let opened: OpenLimit
    if (rule.kind === 'concurrency') {
      const name = id.startsWith('tenant:') ? id.slice('tenant:'.length, id.lastIndexOf('/')) : undefined
      const isCounted = (job: Job): boolean =>
        job.state === 'running' &&
        (name === undefined || job.tenant === name) &&
        (scope === 'queue' || scope === 'tenant' || job.standing === scope)
      opened = { bucket: undefined, rule, running: () => this.jobs.filter(isCounted).length }
    } else {
      const jitter = this.#jitter(scope, rule).jitter
      const bucket = new OpenBucket(rule, store.get(field), jitter, this.restarts, this.now)
      const save = (): void => {
        store.set(field, { tat: bucket.tat, fence: bucket.fence, restarts: this.restarts.count })
      }
      opened = { bucket, scope, rule, save }
    }
    this.#opened.set(id, opened)
    return opened
  }

  /** Concurrency first, as the scripts read them. */
  #limitsAt(scope: Exclude<LimitScope, 'tenant'>): OpenLimit[] {
    const opened = this.limits[scope].map((rule) => {
      const field = `${scope}/${rule.name}`
      return this.#open(scope, rule, field, this.buckets, field)
    })
    return [...opened.filter(({ bucket }) => !bucket), ...opened.filter(({ bucket }) => bucket)]
  }

  #limitsOf(tenant: Tenant): OpenLimit[] {
    const own = tenant.ownLimits
    const template = this.limits.tenant.map((rule) => own.find(({ name }) => name === rule.name) ?? rule)
    const others = own.filter(({ name }) => !this.limits.tenant.some((rule) => rule.name === name))
    return [...template, ...others]
      .filter((rule): rule is LimitRule => rule.kind !== 'none')
      .map((rule) => this.#open('tenant', rule, `tenant:${tenant.name}/${rule.name}`, tenant.buckets, rule.name))
  }

  /** Queue and levels are opened when a script begins: what they learn in it counts from the next. */
  #openLimits(): void {
    for (const scope of ['queue', ...levels] as const) this.#limitsAt(scope)
  }

  #bucketsOver(tenant: Tenant, standing: Level): (OpenLimit & { bucket: OpenBucket })[] {
    return [...this.#limitsAt('queue'), ...this.#limitsAt(standing), ...this.#limitsOf(tenant)].filter(
      (limit): limit is OpenLimit & { bucket: OpenBucket } => limit.bucket !== undefined,
    )
  }

  #charge(tenant: Tenant, standing: Level, permits: number, fence: number): void {
    for (const limit of this.#bucketsOver(tenant, standing)) {
      limit.bucket.charge(permits, fence)
      limit.save()
      const jitter = this.#jitter(limit.scope, limit.rule)
      judgeJitter(jitter, limit.rule, this.now)
      jitter.granted += permits
      this.jitters.set(`${limit.scope}/${limit.rule.name}`, jitter)
    }
  }

  #refund(tenant: Tenant, standing: Level, fence: number, isStale: boolean): void {
    for (const limit of this.#bucketsOver(tenant, standing)) {
      if (limit.bucket.refund(fence)) limit.save()
      if (!isStale) continue
      const jitter = this.#jitter(limit.scope, limit.rule)
      judgeJitter(jitter, limit.rule, this.now)
      jitter.stale += 1
      this.jitters.set(`${limit.scope}/${limit.rule.name}`, jitter)
    }
  }

  #narrowestJitter(tenant: Tenant, standing: Level): number | undefined {
    const jitters = this.#bucketsOver(tenant, standing).map(({ bucket }) => bucket.jitter)
    return jitters.length > 0 ? Math.min(...jitters) : undefined
  }

  #noticeServer(): void {
    if (this.knownServer === this.server) return
    this.knownServer = this.server
    this.restarts = { count: this.restarts.count + 1, lastAt: this.now }
  }

  // Submitting.

  submit(lines: readonly SubmitLine[], now: number): SubmitReply {
    this.#begin(now)
    let accepted = 0
    let duplicates = 0
    const firsts: string[] = []
    const full: { line: number; dealtWith: number }[] = []
    lines.forEach((line, index) => {
      const tenant = this.tenant(line.tenant)
      if (line.basePriority !== undefined) this.#rebase(tenant, line.basePriority)
      const width = entriesPerJob[line.kind]
      const count = line.entries.length / width
      let first: string | undefined
      let dealtWith = 0
      for (; dealtWith < count; dealtWith++) {
        const entry = line.entries.slice(dealtWith * width, (dealtWith + 1) * width)
        const text = entry.at(-1) as string
        const digest = (line.kind === 'named' ? entry[0] : line.kind === 'later' ? entry[1] : '') as string
        if (digest !== '' && this.#knownId(digest)) {
          duplicates += 1
          continue
        }
        if (this.#roomOf(tenant) === 0) break
        const job = this.#newJob(tenant, line, digest, text)
        if (line.kind === 'later') {
          const instant = entry[0] as string
          job.state = 'delayed'
          job.at = (instant.startsWith('+') ? now : 0) + Number(instant.slice(1))
        }
        first ??= job.sequence
        accepted += 1
      }
      firsts.push(first ?? '0')
      if (dealtWith < count) full.push({ line: index, dealtWith })
      this.#settle(tenant)
    })
    this.#count('submitted', accepted)
    this.#end()
    return { accepted, duplicates, firsts, full }
  }

  #newJob(tenant: Tenant, line: SubmitLine, digest: string, text: string): Job {
    const level = line.level as Level
    const isLater = line.kind === 'later'
    const lane = tenant.lane(level, line.lane)
    let sequence: string
    if (isLater) sequence = `0${this.#tick()}`
    else {
      lane.next ??= this.#tick()
      sequence = String(lane.next)
      lane.next += 1
    }
    const job: Job = {
      key: `${level}:${line.lane}:${sequence}:${tenant.name}`,
      level,
      lane: line.lane,
      tenant: tenant.name,
      sequence,
      digest,
      rest: text.slice(1),
      history: undefined,
      state: 'waiting',
      at: 0,
      reason: '',
      isCanceling: false,
      fence: '',
      standing: level,
    }
    if (this.pendingOf(tenant) === 0) tenant.total = 0
    tenant.total += 1
    this.jobs.push(job)
    if (digest !== '') this.ids.set(digest, { period: this.#period(), job })
    if (!isLater) {
      lane.list.push(job)
      tenant.joinTurns(lane)
    }
    return job
  }

  #roomOf(tenant: Tenant): number {
    const isPending = (job: Job): boolean => job.state === 'waiting' || job.state === 'delayed'
    const pending = this.jobs.filter(isPending)
    const { max_pending: ofQueue, max_pending_tenant: ofTenant } = this.values
    const left = ofQueue > 0 ? ofQueue - pending.length : Number.POSITIVE_INFINITY
    const own = pending.filter((job) => job.tenant === tenant.name).length
    return Math.max(0, Math.min(left, ofTenant > 0 ? ofTenant - own : Number.POSITIVE_INFINITY))
  }

  #period(): number {
    return Math.floor(this.now / (this.values.keep_ids / 2))
  }

  #knownId(digest: string): Job | undefined {
    const found = this.ids.get(digest)
    return found && this.#period() - found.period <= 1 ? found.job : undefined
  }

  /** Whom a caller means who names the job as it was submitted: an id may have been forgotten, and given again. */
  addressed(job: Job, now: number): Job | undefined {
    this.now = now
    return job.digest === '' ? job : this.#knownId(job.digest)
  }

  // Finishing and claiming.

  claim(client: string, request: ClaimRequest, now: number): ClaimReply {
    this.#begin(now)
    this.#noticeServer()
    this.#openLimits()
    const before = { leases: [...this.leases], due: this.#dueJobs(), since: this.#overdueIndex() }
    const givenBack: Job[] = []
    const ended = new Set<string>()
    const stale = this.#finishAll(client, request.finished, givenBack, ended)
    const broughtBack = this.#reap(givenBack, ended)
    this.#fallDue(before.due)
    this.#unparkDue()
    this.#settleGivenBack(givenBack)

    const claim = this.#newClaim(request, before.since)
    const open = this.paused.queue === 0 ? levels.filter((level) => this.#isServed(request, level)) : []
    if (request.wanted > 0) for (const level of open) if (!claim.isClosed) this.#claimLevel(claim, level, open)
    for (const stand of claim.misplaced) stand.indexedSince = stand.since
    if (claim.jobs.length > 0) {
      const fence = String(claim.fence)
      this.leases.push({ fence, client, until: now + request.leaseMs * 1000, jobs: [...claim.jobs] })
      this.leases.sort(byInstant)
    }

    const isBounded = claim.looks >= LOOKS || broughtBack >= STALLED_AT_ONCE || before.due.length >= DUE_AT_ONCE
    const isAgain = claim.left > 0 && claim.jobs.length === 0 && isBounded
    let wait: number | undefined
    if (request.idleForMs > 0 && claim.left > 0) {
      const instant = this.#nextInstant(claim, before.leases)
      if (isBounded && !isAgain) wait = 0
      else if (instant < NEVER) wait = Math.max(0, instant - now)
    }
    this.#trim()
    this.#end()
    const fresh = claim.fresh === undefined ? 0 : Math.floor(claim.fresh * FRESH_SHARE)
    return {
      word: claim.jobs.length > 0 ? 'claimed' : isAgain ? 'again' : 'idle',
      stale,
      waitMs: wait === undefined ? undefined : wait / 1000,
      holdsAlarm: false,
      fence: String(claim.fence),
      freshMs: fresh === 0 ? undefined : fresh / 1000,
      jobs: claim.jobs.flatMap((job) => [job.key, claimedTextOf(job)]),
    }
  }

  /** Successes come first, by claim and by tenant and level, unless their lane is ordered; then the others. */
  #finishAll(client: string, finished: readonly FinishedJob[], givenBack: Job[], told: Set<string>): number[] {
    const stale: number[] = []
    const take = (each: FinishedJob, index: number): Job | undefined => {
      told.add(each.fence)
      const lease = this.lease(each.fence)
      const job = lease?.jobs.find(({ key }) => key === each.jobKey)
      if (lease && job) lease.jobs.splice(lease.jobs.indexOf(job), 1)
      else stale.push(index)
      return job
    }
    const indexed = finished.map((each, index) => ({ each, index }))
    const isPlain = ({ finish, jobKey }: FinishedJob): boolean =>
      finish.outcome === 'succeeded' && !isOrdered(jobKey.split(':')[1] as string)
    const plain = indexed.filter(({ each }) => isPlain(each))
    for (const ofClaim of groupBy(plain, ({ each }) => each.fence).values()) {
      for (const group of groupBy(ofClaim, ({ each }) => `${each.standing}:${each.tenant}`).values()) {
        const jobs = group.flatMap(({ each, index }) => take(each, index) ?? [])
        for (const job of jobs) this.#succeed(job)
        if (jobs[0]) this.#freeSlot(this.tenant(jobs[0].tenant))
      }
    }
    for (const { each, index } of indexed) {
      if (isPlain(each)) continue
      const job = take(each, index)
      if (job) this.#finish(job, each, givenBack)
    }
    this.leases = this.leases.filter(
      ({ jobs, fence, client: holder }) => jobs.length > 0 || holder !== client || !told.has(fence),
    )
    return stale
  }

  #succeed(job: Job): void {
    job.state = 'succeeded'
    job.fence = ''
    job.isCanceling = false
    this.#count('succeeded')
  }

  #finish(job: Job, { fence, finish }: FinishedJob, givenBack: Job[]): void {
    const tenant = this.tenant(job.tenant)
    const { isCanceling } = job
    this.#noLongerRuns(tenant, job)
    const history: History = { ...(job.history ?? noHistory) }
    if (finish.outcome === 'succeeded') {
      this.#succeed(job)
      this.#ended(tenant, job)
      return
    }
    if (finish.outcome === 'dead') {
      if (isCanceling) {
        this.#endCanceled(tenant, job)
        return
      }
      job.history = { ...history, attempts: history.attempts + 1, reason: finish.reason, error: finish.error }
      this.#bury(job, finish.reason)
      this.#ended(tenant, job)
      return
    }
    // Neither was started: the permits go back.
    if (finish.outcome === 'returned' || finish.outcome === 'unknown') {
      this.#refund(tenant, job.standing, Number(fence), finish.outcome === 'returned')
      this.#unpark(tenant)
    }
    this.#count(finish.outcome === 'retry' ? 'retried' : finish.outcome === 'unknown' ? 'unknownType' : finish.outcome)
    if (isCanceling) {
      this.#endCanceled(tenant, job)
    } else if (finish.outcome === 'returned' || finish.outcome === 'released') {
      job.state = 'waiting'
      givenBack.push(job)
    } else {
      if (finish.outcome === 'retry') {
        history.attempts += 1
        history.reason = 'retry'
        history.error = finish.error
      } else if (finish.outcome === 'throttled') {
        history.throttles += 1
        history.reason = 'upstream'
      } else {
        if (history.unknownSince === 0) history.unknownSince = Math.floor(this.now / 1000)
        history.reason = 'unknown-type'
      }
      job.history = history
      this.#postpone(job, this.now + Math.round(finish.delayMs * 1000))
    }
  }

  /** It is nowhere until the caller has put it somewhere. */
  #noLongerRuns(tenant: Tenant, job: Job): void {
    job.state = 'succeeded'
    job.fence = ''
    job.isCanceling = false
    this.#freeSlot(tenant)
  }

  /** A slot of a concurrency limit is free: whoever waits for no instant is back in line. */
  #freeSlot(tenant: Tenant): void {
    if (tenant.parking && !tenant.parking.isLifted && tenant.parking.until === NEVER) this.#unpark(tenant)
  }

  #ended(tenant: Tenant, job: Job): void {
    if (!isOrdered(job.lane)) return
    const lane = tenant.lane(job.level, job.lane)
    if (lane.busy !== job) return
    lane.busy = undefined
    tenant.joinTurns(lane)
    this.#settle(tenant)
  }

  #endCanceled(tenant: Tenant, job: Job): void {
    job.state = 'canceled'
    this.#keepMark(job)
    this.#count('canceled')
    this.#ended(tenant, job)
  }

  #keepMark(job: Job): void {
    job.at = this.now + this.values.keep_ids
    this.#marksAdded += 1
  }

  #bury(job: Job, reason: string): void {
    this.#lettersAdded += 1
    job.state = 'failed'
    job.at = this.now
    job.reason = reason
    this.#count('failed')
  }

  #postpone(job: Job, due: number): void {
    job.state = 'delayed'
    job.at = due
  }

  #reap(givenBack: Job[], ended: ReadonlySet<string>): number {
    let broughtBack = 0
    const expired = this.leases.filter(({ until }) => until <= this.now).slice(0, DUE_AT_ONCE)
    for (const lease of expired) {
      if (broughtBack >= STALLED_AT_ONCE) break
      if (ended.has(lease.fence)) continue
      for (const job of lease.jobs) {
        const tenant = this.tenant(job.tenant)
        const { isCanceling } = job
        this.#noLongerRuns(tenant, job)
        if (isCanceling) this.#endCanceled(tenant, job)
        else this.#stall(tenant, job, givenBack)
        broughtBack += 1
      }
      this.leases.splice(this.leases.indexOf(lease), 1)
    }
    return broughtBack
  }

  #stall(tenant: Tenant, job: Job, givenBack: Job[]): void {
    const history: History = { ...(job.history ?? noHistory), reason: 'stall' }
    history.stalls += 1
    job.history = history
    this.#count('stalled')
    if (history.stalls > this.values.max_stalls) {
      this.#bury(job, 'stalled')
      this.#ended(tenant, job)
    } else if (history.stalls === 1) {
      job.state = 'waiting'
      givenBack.push(job)
    } else {
      this.#postpone(job, this.now + (2 ** (history.stalls - 1) - 1) * 1_000_000)
    }
  }

  #dueJobs(): Job[] {
    return this.jobs
      .filter((job) => job.state === 'delayed' && job.at <= this.now)
      .sort((a, b) => a.at - b.at || (a.key < b.key ? -1 : 1))
      .slice(0, DUE_AT_ONCE)
  }

  #fallDue(jobs: readonly Job[]): void {
    for (const job of jobs) {
      const tenant = this.tenant(job.tenant)
      const lane = tenant.lane(job.level, job.lane)
      job.state = 'waiting'
      if (lane.busy === job) lane.busy = undefined
      lane.front.push(job)
      tenant.joinTurns(lane)
      this.#settle(tenant)
    }
  }

  #unparkDue(): void {
    const parked = this.tenants
      .filter(({ parking }) => parking)
      .map((tenant) => ({ tenant, parking: tenant.parking as NonNullable<Tenant['parking']> }))
      .sort((a, b) => a.parking.until - b.parking.until || (a.tenant.name < b.tenant.name ? -1 : 1))
    const lifted = parked.filter(({ parking }) => parking.isLifted).slice(0, DUE_AT_ONCE)
    const due = parked.filter(({ parking }) => !parking.isLifted && parking.until <= this.now).slice(0, DUE_AT_ONCE)
    for (const { tenant } of [...lifted, ...due]) this.#unpark(tenant)
  }

  /** They keep their order at the front of their lanes. */
  #settleGivenBack(jobs: Job[]): void {
    jobs.sort((a, b) => Number(b.sequence) - Number(a.sequence) || (a.key > b.key ? -1 : 1))
    for (const job of jobs) {
      const tenant = this.tenant(job.tenant)
      const lane = tenant.lane(job.level, job.lane)
      if (lane.busy === job) lane.busy = undefined
      lane.front.unshift(job)
      tenant.joinTurns(lane)
      this.#settle(tenant)
    }
  }

  #newClaim(request: ClaimRequest, before: Claim['since']): Claim {
    const present = (level: Level): Tenant[] => this.tenants.filter(({ stands }) => stands[level].present)
    return {
      left: request.wanted,
      looks: 0,
      bytesLeft: LARGEST_REPLY,
      hasSuspect: request.hasSuspect,
      isClosed: false,
      waitUntil: NEVER,
      fence: 0,
      fresh: undefined,
      jobs: [],
      lines: atLevel((level) => present(level).map(({ name, stands }) => ({ name, score: stands[level].score }))),
      since: before,
      lookedAt: atLevel(() => new Set<string>()),
      misplaced: [],
    }
  }

  #overdueIndex(): Claim['since'] {
    return atLevel((level) =>
      this.tenants
        .filter(({ stands }) => stands[level].present)
        .map(({ name, stands }) => ({ name, since: stands[level].indexedSince })),
    )
  }

  #isServed(request: ClaimRequest, level: Level): boolean {
    return request.levels.split(' ').includes(level) && this.paused[level] === 0
  }

  #claimLevel(claim: Claim, level: Level, open: readonly Level[]): void {
    while (claim.left > 0 && claim.looks < LOOKS && claim.bytesLeft > 0) {
      const ofQueue = least(this.#limitsAt('queue'))
      if (ofQueue.permits === 0) {
        claim.isClosed = true
        claim.waitUntil = batchInstant(this.#limitsAt('queue'), claim.left)
        return
      }
      let ofLevel = least(this.#limitsAt(level))
      if (ofLevel.permits === 0) {
        claim.waitUntil = Math.min(claim.waitUntil, batchInstant(this.#limitsAt(level), claim.left))
        return
      }
      const turn = this.#nextTurn(claim, level, open)
      if (!turn) return
      claim.looks += 1
      if (turn.level !== level) ofLevel = least(this.#limitsAt(turn.level))
      if (ofLevel.permits > 0) this.#serve(claim, turn, Math.min(ofQueue.permits, ofLevel.permits))
    }
  }

  #nextTurn(claim: Claim, level: Level, open: readonly Level[]): Turn | undefined {
    if (this.values.max_wait > 0 && (this.turns + 1) % GUARD_EVERY === 0) {
      const overdue = this.#overdue(claim, open)
      if (overdue) {
        this.turns += 1
        return { ...overdue, isGuarded: true }
      }
    }
    const line = claim.lines[level].sort((a, b) => a.score - b.score || (a.name < b.name ? -1 : 1))
    const next = line.shift()
    if (!next) return undefined
    claim.lookedAt[level].add(next.name)
    if (this.tenant(next.name).stands[level].used === 0) this.turns += 1
    return { name: next.name, level, isGuarded: false }
  }

  /**
   * The one that has been able to run for longest, and for too long, among the first few by the index that this claim
   * has not looked at. Entries that turn out to be too old are put right on the way.
   */
  #overdue(claim: Claim, open: readonly Level[]): { name: string; level: Level } | undefined {
    const before = this.now - this.values.max_wait
    let oldest = Number.POSITIVE_INFINITY
    let found: { name: string; level: Level } | undefined
    for (const level of open) {
      if (before <= Math.max(this.resumed[level], this.resumed.queue)) continue
      const first = this.#overdueAt(claim, level, before)
      if (!first || first.stands[level].since >= oldest) continue
      oldest = first.stands[level].since
      found = { name: first.name, level }
    }
    if (found) {
      const { name, level } = found
      claim.lookedAt[level].add(name)
      claim.lines[level] = claim.lines[level].filter((each) => each.name !== name)
    }
    return found
  }

  #overdueAt(claim: Claim, level: Level, before: number): Tenant | undefined {
    const index = claim.since[level]
      .filter(({ since }) => since <= before)
      .sort((a, b) => a.since - b.since || (a.name < b.name ? -1 : 1))
    let longest: Tenant | undefined
    for (const { name } of index.slice(0, OVERDUE_LOOKS)) {
      const tenant = this.tenant(name)
      const stand = tenant.stands[level]
      if (!stand.present || stand.since >= before) claim.misplaced.push(stand)
      else if (claim.lookedAt[level].has(name)) continue
      else if (!longest || stand.since < longest.stands[level].since) longest = tenant
    }
    return longest
  }

  #serve(claim: Claim, { name, level, isGuarded }: Turn, allowed: number): void {
    const tenant = this.tenant(name)
    const stand = tenant.stands[level]
    // Parked by its turn on another level of this very claim.
    if (!stand.present) return
    const own = this.#limitsOf(tenant)
    const free = least(own)
    if (free.permits === 0) {
      stand.used = 0
      this.#park(tenant, free.until, free.name)
      return
    }
    const size = this.values.quantum * tenant.weight * 1000
    const wanted = Math.min(claim.left, Math.ceil((size - stand.used) / 1000), allowed, free.permits)
    const { taken, isHeld, served } = this.#take(claim, tenant, level, wanted)
    const got = taken.length
    if (got > 0) {
      if (claim.fence === 0) claim.fence = this.#nextFence()
      for (const job of taken) {
        job.state = 'running'
        job.standing = level
        job.fence = String(claim.fence)
        claim.jobs.push(job)
      }
      claim.left -= got
      this.#charge(tenant, level, got, claim.fence)
      const jitter = this.#narrowestJitter(tenant, level)
      if (jitter !== undefined) claim.fresh = Math.min(claim.fresh ?? jitter, jitter)
      this.#account(stand, level, got)
    }
    const isOver = stand.used >= size || (isGuarded && got > 0)
    if (isOver) {
      stand.used = Math.max(0, Math.floor(stand.used - size))
      // Only a lane that has had its turn goes behind the others.
      const turns = tenant.turns[served?.level ?? level]
      if (turns.length > 1 && turns[0] === served) turns.push(turns.shift() as Lane)
    }
    this.#settle(tenant)
    if (!stand.present) return
    const left = least(own)
    if (isOver || (left.permits === 0 && got > 0)) stand.score = this.#newScore(tenant)
    if (left.permits === 0) {
      stand.used = 0
      this.#park(tenant, left.until, left.name)
    } else if (!isHeld && (got > 0 || isOver)) {
      claim.lines[level].push({ name, score: stand.score })
    }
  }

  #account(stand: Stand, level: Level, got: number): void {
    this.virtual[level] += Math.floor((got * 1e9) / Math.max(this.weights[level], 1))
    stand.received += got
    stand.longestWait = Math.max(stand.longestWait, this.now - stand.since)
    stand.since = this.now
    stand.used += got * 1000
  }

  /** From as many lanes as it needs; with an override, of all levels. */
  #take(
    claim: Claim,
    tenant: Tenant,
    standing: Level,
    wanted: number,
  ): { taken: Job[]; isHeld: boolean; served: Lane | undefined } {
    const taken: Job[] = []
    let isHeld = false
    let served: Lane | undefined
    for (const level of tenant.override === undefined ? [standing] : levels) {
      if (taken.length >= wanted || tenant.turns[level].length === 0) continue
      const line = this.#takeLine(claim, tenant, level, wanted, taken)
      isHeld ||= line.isHeld
      served = line.served
    }
    return { taken, isHeld, served }
  }

  #takeLine(
    claim: Claim,
    tenant: Tenant,
    level: Level,
    wanted: number,
    taken: Job[],
  ): { isHeld: boolean; served: Lane | undefined } {
    const turns = tenant.turns[level]
    let served: Lane | undefined
    while (taken.length < wanted && turns[0]) {
      const lane = turns[0]
      const most = isOrdered(lane.token) ? taken.length + 1 : wanted
      const before = taken.length
      const isHeld = this.#takeJobs(claim, lane.front, most, taken)
      // What never ran may pass one that is held back, but not where order is promised.
      if (!isHeld || !isOrdered(lane.token)) this.#takeJobs(claim, lane.list, most, taken)
      if (taken.length > before) served = lane
      if (isOrdered(lane.token) && taken.length > before) {
        lane.busy = taken[before]
        turns.shift()
      } else if (remaining(lane) === 0) {
        turns.shift()
      } else if (isHeld || claim.bytesLeft <= 0) {
        return { isHeld: true, served }
      }
    }
    return { isHeld: false, served }
  }

  /** Answers whether the first that is left is held back: one suspect at a time. */
  #takeJobs(claim: Claim, line: Job[], most: number, taken: Job[]): boolean {
    while (taken.length < most && line[0] && claim.bytesLeft > 0) {
      const job = line[0]
      if (isSuspect(job) && claim.hasSuspect) return true
      line.shift()
      if (job.state === 'canceled') {
        this.#keepMark(job)
        continue
      }
      claim.hasSuspect ||= isSuspect(job)
      claim.bytesLeft -= textOf(job).length
      taken.push(job)
    }
    return false
  }

  /** When the next claim can bring anything. Leases are those held before this claim. */
  #nextInstant(claim: Claim, leases: readonly Lease[]): number {
    const later = (instants: readonly number[]): number => Math.min(NEVER, ...instants.filter((at) => at > this.now))
    const expiry = later(leases.map(({ until }) => until))
    if (claim.isClosed) return Math.min(claim.waitUntil, expiry)
    const parked = later(this.tenants.flatMap(({ parking }) => (parking && !parking.isLifted ? [parking.until] : [])))
    // What was postponed by this very claim may be due already.
    const due = this.jobs.filter(({ state }) => state === 'delayed').map(({ at }) => at)
    return Math.min(claim.waitUntil, expiry, parked, ...due)
  }

  renew(client: string, fences: readonly string[], leaseMs: number, now: number): string[] {
    const lost = fences.filter((fence) => this.lease(fence)?.client !== client)
    for (const lease of this.leases) {
      if (lease.client === client && fences.includes(lease.fence)) lease.until = now + leaseMs * 1000
    }
    this.leases.sort(byInstant)
    return lost
  }

  admit(fence: string, jobKey: string, standing: Level, now: number): AdmitReply {
    this.#begin(now)
    const job = this.lease(fence)?.jobs.find(({ key }) => key === jobKey)
    if (!job) return { word: 'stale' }
    this.#noticeServer()
    this.#openLimits()
    const tenant = this.tenant(job.tenant)
    const closed = this.#bucketsOver(tenant, standing).filter(({ bucket }) => bucket.available() === 0)
    if (closed.length > 0) {
      const latest = Math.max(now + 1, ...closed.map(({ bucket }) => bucket.instant(1)))
      return { word: 'wait', waitMs: (latest - now) / 1000 }
    }
    this.#charge(tenant, standing, 1, this.#nextFence())
    const jitter = this.#narrowestJitter(tenant, standing)
    const fresh = jitter === undefined ? 0 : Math.floor(jitter * FRESH_SHARE)
    return { word: 'admitted', freshMs: fresh === 0 ? undefined : fresh / 1000 }
  }

  // Control.

  cancel(job: Job | undefined, now: number): CancelReply {
    this.#begin(now)
    const { state } = this.readJob(job, now)
    if (!job || state === 'unknown') return 'unknown'
    if (state === 'canceled') return 'canceled'
    if (state === 'running') {
      job.isCanceling = true
      return 'canceling'
    }
    if (state !== 'waiting' && state !== 'delayed') return 'ended'
    const tenant = this.tenant(job.tenant)
    const wasDelayed = job.state === 'delayed'
    job.state = 'canceled'
    // One that waits is met by a claim; until then its mark is for ever.
    job.at = wasDelayed ? now + this.values.keep_ids : NEVER
    const lane = tenant.lane(job.level, job.lane)
    if (wasDelayed && lane.busy === job) {
      lane.busy = undefined
      tenant.joinTurns(lane)
      this.#settle(tenant)
    }
    this.#count('canceled')
    this.#end()
    return 'canceled'
  }

  changeSettings(patch: SettingsPatch, now: number): void {
    this.#begin(now)
    for (const tenant of this.tenants) if (tenant.parking?.isLifted) this.#unpark(tenant)
    for (const { parking } of this.tenants) if (parking) parking.isLifted = true
    this.values = { ...this.values, ...patch.values }
    for (const [scope, changes] of Object.entries(patch.limits ?? {}) as [LimitScope, Record<string, LimitChange>][]) {
      const changed = this.#changedLimits[scope] ?? {}
      this.#changedLimits[scope] = changed
      for (const [name, change] of Object.entries(changes)) {
        if (change.kind === 'declared') delete changed[name]
        else changed[name] = change
      }
    }
    this.limits = this.#compileLimits()
  }

  changeTenant(name: string, patch: TenantPatch, now: number): void {
    this.#begin(now)
    const tenant = this.tenant(name)
    if (patch.weight !== undefined) this.#reweigh(tenant, patch.weight)
    if (patch.base !== undefined) this.#rebase(tenant, patch.base)
    if (patch.level !== undefined) tenant.override = patch.level === '' ? undefined : (patch.level as Level)
    if (patch.limits) {
      const changes = patch.limits
      tenant.ownLimits = [
        ...tenant.ownLimits.filter((rule) => !changes[rule.name]),
        ...Object.values(changes).filter((rule) => rule.kind !== 'declared'),
      ].sort((a, b) => (a.name < b.name ? -1 : 1)) as Tenant['ownLimits']
    }
    if (patch.paused === true) tenant.pausedAt ??= now
    if (patch.paused === false) tenant.pausedAt = undefined
    if (patch.limits || patch.paused !== undefined) this.#unpark(tenant)
    this.#settle(tenant)
    this.#end()
  }

  pauseQueue(level: Level | undefined, isPaused: boolean, now: number): void {
    this.#begin(now)
    const what = level ?? 'queue'
    if (isPaused) {
      if (this.paused[what] === 0) this.paused[what] = now
    } else if (this.paused[what] > 0) {
      this.paused[what] = 0
      this.resumed[what] = now
    }
  }

  takeDeadLetter(job: Job, retries: boolean, now: number): 'retried' | 'discarded' | 'unknown' {
    this.#begin(now)
    if (job.state !== 'failed') return 'unknown'
    if (retries) {
      job.state = 'delayed'
      job.at = now
      job.history = { ...noHistory, reason: 'retry' }
      this.tenant(job.tenant).total += 1
      this.#count('deadLettersRetried')
      return 'retried'
    }
    job.state = 'forgotten'
    this.#count('deadLettersDiscarded')
    return 'discarded'
  }

  // Reading.

  counts(): QueueCounts {
    const at = (state: Job['state']): number => this.jobs.filter((job) => job.state === state).length
    const counted = (name: string): number => this.counted[name] ?? 0
    return {
      waiting: at('waiting'),
      delayed: at('delayed'),
      running: at('running'),
      submitted: counted('submitted'),
      succeeded: counted('succeeded'),
      failed: counted('failed'),
      canceled: counted('canceled'),
      retried: counted('retried'),
      throttled: counted('throttled'),
      stalled: counted('stalled'),
      returned: counted('returned'),
      released: counted('released'),
      unknownType: counted('unknownType'),
      parked: counted('parked'),
      deadLettersExpired: counted('deadLettersExpired'),
      deadLettersRetried: counted('deadLettersRetried'),
      deadLettersDiscarded: counted('deadLettersDiscarded'),
    }
  }

  /** One that ended is known while its id is, or, by its number, while its lane is. */
  readJob(job: Job | undefined, now: number): JobAnswer {
    this.now = now
    const unknown: JobAnswer = { state: 'unknown', due: undefined, reason: '', text: undefined }
    if (!job) return unknown
    const tenant = this.tenants.find(({ name }) => name === job.tenant)
    const lane = tenant?.lanes.find(({ level, token }) => level === job.level && token === job.lane)
    const isNumbered = lane?.next !== undefined && !job.sequence.startsWith('0')
    const isKept =
      job.state === 'waiting' || job.state === 'delayed' || job.state === 'running' || job.state === 'failed'
    if (job.state === 'succeeded' && job.digest === '' && !isNumbered) return unknown
    const isInLane = lane?.front.includes(job) || lane?.list.includes(job)
    return {
      state: job.state,
      due: job.state === 'delayed' ? job.at : undefined,
      reason: job.state === 'failed' ? job.reason : '',
      text: isKept || (job.state === 'canceled' && isInLane) ? textOf(job) : undefined,
    }
  }

  /** Newest first. */
  deadLetters(): Job[] {
    return this.jobs.filter(({ state }) => state === 'failed').sort((a, b) => b.at - a.at || (a.key < b.key ? 1 : -1))
  }

  limitRows(name: string, now: number): { activeTenants: number; rows: LimitRow[] } {
    this.#begin(now)
    this.#openLimits()
    const rows: LimitRow[] = []
    for (const scope of ['queue', ...levels] as const) {
      for (const limit of this.#limitsAt(scope)) rows.push(limitRow(scope, limit, now))
    }
    const tenant = this.tenants.find((each) => each.name === name) ?? new Tenant(name)
    if (name !== '') for (const limit of this.#limitsOf(tenant)) rows.push(limitRow('tenant', limit, now))
    const standing = this.tenants.flatMap(({ stands }) => levels.filter((level) => stands[level].present))
    const parked = this.tenants.filter(({ parking }) => parking)
    return { activeTenants: standing.length + parked.length, rows }
  }

  readTenant(name: string): FoundTenant {
    const tenant = this.tenants.find((each) => each.name === name) ?? new Tenant(name)
    const { parking, stands } = tenant
    const until = !parking || parking.isLifted ? undefined : parking.until
    const isInLine = levels.some((level) => tenant.turns[level].length > 0)
    const fairness = (level: Level): { entitled: number; received: number } => {
      const { present, virtual, entitled, received } = stands[level]
      const since = present ? this.virtual[level] - virtual : 0
      return { entitled: (entitled + Math.floor(tenant.weight * since)) / 1e6, received }
    }
    return {
      state: tenant.pausedAt !== undefined ? 'paused' : parking ? 'parked' : isInLine ? 'ready' : 'idle',
      parkedBy: parking?.limit,
      parkedUntil: until === undefined ? undefined : until === NEVER ? Number.POSITIVE_INFINITY : until / 1000,
      weight: tenant.weight,
      basePriority: tenant.base,
      levelOverride: tenant.override,
      waiting: this.jobsOf(name, 'waiting').length,
      delayed: this.jobsOf(name, 'delayed').length,
      running: this.jobsOf(name, 'running').length,
      longestWaitMs: Math.max(...levels.map((level) => stands[level].longestWait)) / 1000,
      fairness: { high: fairness('high'), normal: fairness('normal'), low: fairness('low') },
    }
  }
}

interface Turn {
  readonly name: string
  readonly level: Level
  readonly isGuarded: boolean
}

function atLevel<T>(make: (level: Level) => T): Record<Level, T> {
  return { high: make('high'), normal: make('normal'), low: make('low') }
}

function groupBy<T>(list: readonly T[], key: (each: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const each of list) groups.set(key(each), [...(groups.get(key(each)) ?? []), each])
  return groups
}

function byInstant(a: Lease, b: Lease): number {
  return a.until - b.until || (`${a.fence}:${a.client}` < `${b.fence}:${b.client}` ? -1 : 1)
}

function permitsOf(limit: OpenLimit): number {
  return limit.bucket ? limit.bucket.available() : Math.max(0, limit.rule.max - limit.running())
}

/** What all of them can grant; when that is nothing, the latest instant named and who names it. */
function least(limits: readonly OpenLimit[]): { permits: number; until: number; name: string } {
  let permits = Number.POSITIVE_INFINITY
  let until = 0
  let name = ''
  for (const limit of limits) {
    const own = permitsOf(limit)
    permits = Math.min(permits, own)
    if (own > 0) continue
    const instant = limit.bucket ? limit.bucket.instant(1) : NEVER
    if (instant <= until) continue
    until = instant
    name = limit.rule.name
  }
  return { permits, until, name }
}

/** When half a burst can be granted at once: asking for every single permit would cost a request each. */
function batchInstant(limits: readonly OpenLimit[], wanted: number): number {
  let latest = 0
  for (const limit of limits) {
    if (!limit.bucket) {
      if (permitsOf(limit) === 0) return NEVER
      continue
    }
    const permits = Math.max(1, Math.min(wanted, Math.floor(limit.bucket.rule.burst / 2)))
    latest = Math.max(latest, limit.bucket.instant(permits))
  }
  return latest
}

function limitRow(scope: LimitScope, limit: OpenLimit, now: number): LimitRow {
  const { rule, bucket } = limit
  const available = permitsOf(limit)
  if (!bucket) {
    const none = { windowUs: 0, burst: 0, jitterUs: 0, opensInUs: 0, fullInUs: 0 }
    return { scope, name: rule.name, kind: rule.kind, limit: rule.max, ...none, available, used: limit.running() }
  }
  return {
    scope,
    name: rule.name,
    kind: 'bucket',
    limit: bucket.rule.count,
    windowUs: bucket.rule.window,
    burst: bucket.rule.burst,
    jitterUs: bucket.jitter,
    available,
    used: Math.min(bucket.rule.burst, Math.ceil(Math.max(0, bucket.tat - now) / bucket.interval)),
    opensInUs: available > 0 ? 0 : bucket.instant(1) - now,
    fullInUs: Math.max(0, bucket.tat - now, bucket.closedUntil - now),
  }
}
