import { deepStrictEqual } from 'node:assert'
import type fc from 'fast-check'
import { placeOfKey } from '../../src/store/job-place.ts'
import type { LetterPlace } from '../../src/store/letter-place.ts'
import { actionOfLane, idDigest, type Level, toActionLane } from '../../src/store/names.ts'
import { decodeRecord, encodeRecord, hasCost } from '../../src/store/record.ts'
import { admitJob } from '../../src/store/scripts/admit-job.ts'
import { cancelJob } from '../../src/store/scripts/cancel-job.ts'
import { changeSettings } from '../../src/store/scripts/change-settings.ts'
import { changeTenant, type TenantPatch } from '../../src/store/scripts/change-tenant.ts'
import { endAction } from '../../src/store/scripts/end-action.ts'
import { type Finish, type FinishedJob, finishAndClaim, type Lesson } from '../../src/store/scripts/finish-and-claim.ts'
import { freeTrash } from '../../src/store/scripts/free-trash.ts'
import { type ActionRules, openAction } from '../../src/store/scripts/open-action.ts'
import { pauseQueue } from '../../src/store/scripts/pause-queue.ts'
import { readActions } from '../../src/store/scripts/read-actions.ts'
import { readDeadLetters } from '../../src/store/scripts/read-dead-letters.ts'
import { type JobAddress, readJob } from '../../src/store/scripts/read-job.ts'
import { readTenant } from '../../src/store/scripts/read-tenant.ts'
import { renewLeases } from '../../src/store/scripts/renew-leases.ts'
import { type DutyOutcome, settleDuty } from '../../src/store/scripts/settle-duty.ts'
import { type SubmitLine, submitJobs } from '../../src/store/scripts/submit-jobs.ts'
import { takeBackAction } from '../../src/store/scripts/take-back-action.ts'
import { takeDeadLetter } from '../../src/store/scripts/take-dead-letter.ts'
import { type DutyTaker, takeDuty } from '../../src/store/scripts/take-duty.ts'
import { watchAction } from '../../src/store/scripts/watch-action.ts'
import type { Declaration, DeclaredSettings, SettingsPatch } from '../../src/store/settings.ts'
import { isClosed, isOver, type Action as OpenAction } from './reference/action.ts'
import { inLaneOrder } from './reference/recovery.ts'
import { claimedTextOf, type Job, textOf } from './reference/tenant.ts'
import type { Client, Held, World } from './world.ts'

/** A line to submit: ids are numbers, so that some of them come again; a delay makes it a later one. */
export interface LineStep {
  readonly tenant: string
  readonly level: Level
  readonly lane: string
  readonly base: number | undefined
  readonly kind: SubmitLine['kind']
  readonly jobs: readonly { readonly id: number; readonly delayUs: number; readonly cost: number }[]
}

/** `which` picks among what the client holds; `isZombie` among all it ever claimed. */
export interface FinishStep {
  readonly which: number
  readonly isZombie: boolean
  readonly finish: Finish
}

export interface LessonStep {
  readonly upstream: string
  readonly pushback: Lesson['pushback'] | null
  readonly reading: Lesson['reading'] | null
}

/** One step of a run, as plain data so that a failing run can be read. Positions are taken modulo what there is. */
export type Action =
  | { readonly do: 'submit'; readonly client: number; readonly lines: readonly LineStep[] }
  | {
      readonly do: 'claim'
      readonly client: number
      readonly wanted: number
      readonly levels: string
      readonly leaseMs: number
      readonly idleForMs: number
      readonly hasSuspect: boolean
      /** Until when it takes back leases that ran out, from now; not given: whenever. */
      readonly takesBackForUs?: number | undefined
      readonly saysUntold: boolean
      readonly finished: readonly FinishStep[]
      /** Of the first of them. */
      readonly lesson: LessonStep | null
    }
  | { readonly do: 'renew'; readonly client: number; readonly which: readonly number[]; readonly leaseMs: number }
  | { readonly do: 'admit'; readonly client: number; readonly which: number; readonly isZombie: boolean }
  | { readonly do: 'wait'; readonly us: number }
  | { readonly do: 'cancel'; readonly client: number; readonly which: number }
  | { readonly do: 'settings'; readonly patch: SettingsPatch }
  /** Other code is deployed, with its limits and how they are shared as far as it gives them; what it does not give stays. */
  | { readonly do: 'declare'; readonly declared: DeclaredSettings; readonly gives: { share: boolean; limits: boolean } }
  | { readonly do: 'tenant'; readonly tenant: string; readonly patch: TenantPatch }
  | { readonly do: 'pause'; readonly level: Level | undefined; readonly isPaused: boolean }
  | { readonly do: 'letter'; readonly client: number; readonly which: number; readonly retries: boolean }
  | {
      readonly do: 'open action'
      readonly client: number
      readonly tenant: string
      readonly name: string
      readonly isOrdered: boolean
      readonly rules: Omit<ActionRules, 'lane'>
      readonly webhook: string
      /** Runs that were written down before there was such a thing have none. */
      readonly begunBy?: string
    }
  | { readonly do: 'end action'; readonly client: number; readonly which: number; readonly verb: 'seal' | 'cancel' }
  | { readonly do: 'take back action'; readonly client: number; readonly which: number }
  | { readonly do: 'watch action'; readonly client: number; readonly which: number; readonly forMs: number }
  | { readonly do: 'read actions'; readonly which: readonly number[]; readonly withStatistics: boolean }
  | { readonly do: 'forget action'; readonly which: number }
  | { readonly do: 'take duty'; readonly taker: DutyTaker }
  | { readonly do: 'settle duty'; readonly client: number; readonly which: number; readonly became: DutyOutcome }
  | { readonly do: 'read job'; readonly which: number }
  | { readonly do: 'read tenant'; readonly tenant: string }
  | { readonly do: 'read limits'; readonly tenant: string }
  | { readonly do: 'read letters' }
  | { readonly do: 'repeat'; readonly client: number; readonly back: number }
  | { readonly do: 'crash'; readonly client: number }
  | { readonly do: 'restart' }
  /** A process comes back that knew the queue in the store as it was before that was emptied. It gives nothing. */
  | { readonly do: 'come back' }
  | { readonly do: 'flush scripts' }

const AUDITED_EVERY = 8

/** Runs an action on the queue and on its model and compares the replies; at intervals, everything there is. */
export class Step implements fc.AsyncCommand<World, World> {
  readonly action: Action

  constructor(action: Action) {
    this.action = action
  }

  check(): boolean {
    return true
  }

  async run(world: World): Promise<void> {
    await perform(world, this.action)
    await world.checkCounts()
    world.steps += 1
    if (world.steps % AUDITED_EVERY === 0) await world.audit()
  }

  toString(): string {
    return JSON.stringify(this.action)
  }
}

async function perform(world: World, action: Action): Promise<void> {
  const { model, now, nowUs } = world
  switch (action.do) {
    case 'submit': {
      const lines = action.lines.map((line) => toLine(world, line))
      const reply = await submitJobs(world.client(action.client).requests, lines, { nowUs })
      deepStrictEqual(reply, model.submit(lines, now))
      return
    }
    case 'claim':
      return claim(world, action)
    case 'renew': {
      const client = world.client(action.client)
      const fences = [...new Set(action.which.flatMap((which) => pick(client.claimed, which)?.fence ?? []))]
      const renewal = { client: client.name, leaseMs: action.leaseMs, fences, nowUs }
      const lost = await renewLeases(world.redis, client.keys, renewal)
      deepStrictEqual(lost, model.renew(client.name, fences, action.leaseMs, now))
      return
    }
    case 'admit': {
      const client = world.client(action.client)
      const held = pick(action.isZombie ? client.claimed : holding(world, client), action.which)
      if (!held) return
      const reply = await admitJob(client.requests, { ...held, nowUs })
      deepStrictEqual(reply, model.admit(held.fence, held.jobKey, held.standing, now))
      return
    }
    case 'wait':
      world.now += action.us
      return
    case 'cancel': {
      const named = pick(model.jobs, action.which)
      const job = named && model.addressed(named, now)
      if (!named || job?.state === 'forgotten') return
      const reply = await cancelJob(world.client(action.client).requests, addressOf(named), nowUs)
      deepStrictEqual(reply, model.cancel(job, now))
      return
    }
    case 'settings':
      await changeSettings(world.client(0).requests, action.patch, nowUs)
      model.changeSettings(action.patch, now)
      return
    case 'declare': {
      const { gives, declared } = action
      const declaration: Declaration = {
        values: declared.values,
        given: gives.share ? { strict: true } : {},
        ...(gives.limits && { limits: declared.limits }),
      }
      await world.register(declaration)
      model.declare(declaration, now)
      return
    }
    case 'tenant':
      await changeTenant(world.client(0).requests, action.tenant, action.patch, nowUs)
      model.changeTenant(action.tenant, action.patch, now)
      return
    case 'pause':
      await pauseQueue(world.client(0).requests, { level: action.level, isPaused: action.isPaused, nowUs })
      model.pauseQueue(action.level, action.isPaused, now)
      return
    case 'letter': {
      const dead = model.deadLetters(now)
      const job = pick(dead.length > 0 ? dead : model.jobs, action.which)
      if (!job) return
      const take = { jobKey: job.key, retries: action.retries, nowUs }
      const reply = await takeDeadLetter(world.client(action.client).requests, take)
      deepStrictEqual(reply, model.takeDeadLetter(job, action.retries, now))
      return
    }
    case 'open action': {
      const { client, tenant, name, isOrdered, rules, webhook, begunBy = '' } = action
      const opened = { tenant, name, rules: { ...rules, lane: toActionLane(name, isOrdered) }, webhook, begunBy }
      const reply = await openAction(world.client(client).requests, opened, { nowUs })
      deepStrictEqual(reply, model.openAction(opened, now))
      return
    }
    case 'end action': {
      const ended = { ...namedAction(world, action.which), verb: action.verb }
      const reply = await endAction(world.client(action.client).requests, ended, nowUs)
      deepStrictEqual(reply, model.endAction(ended, now))
      return
    }
    case 'take back action': {
      const taken = namedAction(world, action.which)
      const reply = await takeBackAction(world.client(action.client).requests, taken, nowUs)
      deepStrictEqual(reply, model.takeBackAction(taken, now))
      return
    }
    case 'watch action': {
      const { name: client, requests } = world.client(action.client)
      const watched = { ...namedAction(world, action.which), forMs: action.forMs }
      const reply = await watchAction(requests, watched, nowUs)
      deepStrictEqual(reply, model.watchAction({ ...watched, client }, now))
      return
    }
    case 'read actions': {
      const { withStatistics } = action
      const named = action.which.map((which) => namedAction(world, which))
      const names = named.map(({ tenant, name }) => `${tenant}:${name}`)
      const found = await readActions(world.client(0).requests, names, { withStatistics, nowUs })
      const expected = named.map(({ tenant, name }) => model.readAction(tenant, name, withStatistics, now))
      deepStrictEqual(found, expected)
      return
    }
    case 'forget action': {
      const over = model.actions.filter((each) => isOver(each) && !isWaitedFor(world, each))
      const forgotten = pick(over, action.which)
      if (!forgotten) return
      await world.forgetAction(forgotten.tenant, forgotten.name)
      model.forgetAction(forgotten)
      return
    }
    case 'take duty': {
      const reply = await takeDuty(world.client(0).requests, action.taker, nowUs)
      deepStrictEqual(reply, model.takeDuty(action.taker, now))
      if (reply.word === 'taken') world.duties.push(reply.duty)
      return
    }
    case 'settle duty':
      return settle(world, action)
    case 'read job':
      return compareJob(world, pick(model.jobs, action.which))
    case 'read tenant':
      deepStrictEqual(await readTenant(world.client(0).requests, action.tenant, nowUs), model.readTenant(action.tenant))
      return
    case 'read limits':
      return world.checkLimits(action.tenant)
    case 'read letters':
      return compareLetters(world)
    case 'repeat':
      return repeat(world, action)
    case 'crash': {
      const at = action.client % world.clients.length
      world.clients.splice(at, 1)
      world.addClient()
      return
    }
    case 'restart':
      model.server = `${model.server}+`
      return
    case 'come back':
      await world.register({ values: model.declared.values, given: {} }, '1')
      model.comeBack(now)
      return
    case 'flush scripts':
      await world.redis.call('FUNCTION', 'FLUSH')
  }
}

function pick<T>(list: readonly T[], which: number): T | undefined {
  return list[which % list.length]
}

/** One that is there, or now and then one that is not. */
function namedAction({ model }: World, which: number): { tenant: string; name: string } {
  const { tenant, name } = model.actions[which % (model.actions.length + 1)] ?? { tenant: 'a', name: 'never' }
  return { tenant, name }
}

/** Its tenant still stands in line for its lane, which was dropped. */
function isWaitedFor({ model }: World, { tenant, rules }: OpenAction): boolean {
  const { turns } = model.tenants.find(({ name }) => name === tenant) ?? {}
  return turns?.[rules.level].some(({ token }) => token === rules.lane) ?? false
}

/** Does what the duty asks for, as far as it is a matter of the store, and says what became of it. */
async function settle(world: World, { client, which, became }: Action & { do: 'settle duty' }): Promise<void> {
  const { model, now, nowUs } = world
  const duty = pick(world.duties, which)
  if (!duty) return
  const { requests } = world.client(client)
  if (duty.kind === 'seal') {
    const { tenant, name } = duty
    const reply = await endAction(requests, { tenant, name, verb: 'seal' }, nowUs)
    deepStrictEqual(reply, model.endAction({ tenant, name, verb: 'seal' }, now))
  }
  let isDone = true
  if (duty.kind === 'free') {
    const left = await freeTrash(requests, duty.tenant, 2, nowUs)
    deepStrictEqual(left, model.freeTrash(duty.tenant, 2, now))
    isDone = left === 0
  }
  const outcome: DutyOutcome = isDone || became.outcome !== 'done' ? became : { outcome: 'again', afterMs: 0 }
  const reply = await settleDuty(requests, duty, outcome, nowUs)
  deepStrictEqual(reply, model.settleDuty(duty, outcome, now))
}

/** A lane `@<n>` is that of one of the open actions, or now and then of any; without one, of an action never opened. */
function placeOf({ model }: World, { tenant, level, lane }: LineStep): Pick<SubmitLine, 'tenant' | 'level' | 'lane'> {
  const at = actionOfLane(lane)
  if (at === undefined) return { tenant, level, lane }
  const open = model.actions.filter((action) => !isClosed(action))
  const action = pick(Number(at) % 10 === 0 ? model.actions : open, Number(at))
  return action
    ? { tenant: action.tenant, level: action.rules.level, lane: action.rules.lane }
    : { tenant, level, lane }
}

function toLine(world: World, line: LineStep): SubmitLine {
  const { base, kind, jobs } = line
  const { tenant, level, lane } = placeOf(world, line)
  const entries = jobs.flatMap(({ id, delayUs, cost }) => {
    const isNamed = kind === 'named' || (kind === 'later' && id % 2 === 0)
    world.ids += 1
    const record = encodeRecord('k', 'T', isNamed ? `i${id}` : '', '', String(world.ids), cost)
    const digest = isNamed ? idDigest(tenant, `i${id}`) : ''
    if (kind === 'fresh') return [record]
    if (kind === 'named') return [digest, record]
    return [id % 3 === 0 ? `@${world.now + delayUs}` : `+${delayUs}`, digest, record]
  })
  return { tenant, level, lane, basePriority: base, kind, entries, hasCosts: entries.some(hasCost) }
}

/** What the client really holds. */
function holding(world: World, client: Client): Held[] {
  return client.claimed.filter(({ fence, jobKey }) => world.model.lease(fence)?.jobs.some(({ key }) => key === jobKey))
}

async function claim(world: World, action: Action & { do: 'claim' }): Promise<void> {
  const client = world.client(action.client)
  const held = holding(world, client)
  const finished: FinishedJob[] = action.finished
    .flatMap(({ which, isZombie, finish }) => {
      const one = pick(isZombie ? client.claimed : held, which)
      return one ? [{ ...one, finish, ...measured(one, finish, which) }] : []
    })
    .filter(({ fence, jobKey }, at, all) => all.findIndex((one) => one.fence === fence && one.jobKey === jobKey) === at)
  const [first] = finished
  if (first && action.lesson)
    finished[0] = { ...first, lesson: lessonOf(action.lesson, (first as Held & FinishedJob).member) }
  const untold = action.saysUntold ? untoldOf(client, finished) : undefined
  const { wanted, levels, leaseMs, idleForMs, hasSuspect, takesBackForUs } = action
  const request = {
    wanted,
    levels,
    leaseMs,
    idleForMs,
    hasSuspect,
    finished,
    nowUs: world.nowUs,
    ...(untold && { untold }),
    ...(takesBackForUs !== undefined && { takesBackUntilUs: world.now + takesBackForUs }),
  }
  const reply = await finishAndClaim(client.requests, request)
  deepStrictEqual({ ...reply, holdsAlarm: false }, world.model.claim(client.name, request, world.now))
  for (const { fence, jobKey } of finished) client.told.add(`${fence} ${jobKey}`)
  for (let at = 0; at < reply.jobs.length; at += 2) {
    const [jobKey, text] = reply.jobs.slice(at, at + 2) as [string, string]
    const [, told, member] = /^\^([a-z]+)(?:&[^=]+=([^&\n]*))?[^\n]*\n/.exec(text) ?? []
    const standing = (told ?? jobKey.split(':')[0]) as Level
    const isSpecial = member !== undefined || decodeRecord(text.replace(/^\^[^\n]*\n/, '')).cost !== 1
    client.claimed.push({ fence: reply.fence, jobKey, standing, place: placeOfKey(jobKey), isSpecial, member })
  }
}

function lessonOf({ upstream, pushback, reading }: LessonStep, member: string | undefined): Lesson {
  const taught = { upstream, pushback: pushback ?? undefined, reading: reading ?? undefined }
  return member === undefined ? taught : { ...taught, member }
}

/** What a worker tells of a job of an action that has ended. */
function measured({ jobKey }: Held, { outcome }: Finish, which: number): Pick<FinishedJob, 'action'> {
  if (actionOfLane(jobKey.split(':')[1] as string) === undefined) return {}
  if (outcome !== 'succeeded' && outcome !== 'dead') return {}
  return {
    action: { attempts: 1, throttles: which % 2, durationMs: 10 * which, result: which % 3 === 0 ? '' : `r${which}` },
  }
}

/** As a worker counts: what it has told of before is told; undefined when it tells of anything twice. */
function untoldOf(client: Client, finished: readonly FinishedJob[]): ReadonlyMap<string, number> | undefined {
  const names = finished.map(({ fence, jobKey }) => `${fence} ${jobKey}`)
  if (new Set(names).size < names.length || names.some((name) => client.told.has(name))) return undefined
  const untold = new Map<string, number>()
  for (const { fence, jobKey } of client.claimed) {
    if (!client.told.has(`${fence} ${jobKey}`)) untold.set(fence, (untold.get(fence) ?? 0) + 1)
  }
  return untold
}

function addressOf(job: Job): JobAddress {
  return job.digest === ''
    ? { jobKey: job.key, tenant: '', action: '', digest: '' }
    : { jobKey: '', tenant: job.tenant, action: actionOfLane(job.lane) ?? '', digest: job.digest }
}

async function compareJob(world: World, named: Job | undefined): Promise<void> {
  if (!named) return
  const found = await readJob(world.client(0).requests, addressOf(named), world.nowUs)
  const job = world.model.addressed(named, world.now)
  const { state, due, reason, text } = world.model.readJob(job, world.now)
  if (state === 'forgotten') return
  deepStrictEqual(
    found ?? 'unknown',
    state === 'unknown'
      ? 'unknown'
      : {
          jobKey: job?.key,
          state,
          dueMs: due === undefined ? undefined : due / 1000,
          reason,
          record: text === undefined ? undefined : decodeRecord(text),
        },
  )
}

async function compareLetters(world: World): Promise<void> {
  const dead = world.model.deadLetters(world.now)
  const read = (after: LetterPlace | undefined, count: number) =>
    readDeadLetters(world.redis, world.client(0).keys, { after, count, nowUs: world.nowUs })
  const first = await read(undefined, 1)
  const found = await read(first.rows[0]?.place, 3)
  const letters = dead.slice(dead.length > 0 ? 1 : 0, 4).map((job) => ({
    jobKey: job.key,
    diedAt: Math.floor(job.at / 1000),
    reason: job.reason,
    record: decodeRecord(textOf(job)),
  }))
  deepStrictEqual([found.total, found.isMore], [dead.length, dead.length > 4])
  deepStrictEqual(
    found.rows.map(({ letter }) => letter),
    letters,
  )
}

/** A repeated request gets the reply it got, as far as a claim's jobs are still the caller's, and changes nothing. */
async function repeat(world: World, action: Action & { do: 'repeat' }): Promise<void> {
  const client = world.client(action.client)
  const sent = client.requests.sent.at(-1 - (action.back % Math.max(1, client.requests.sent.length)))
  if (!sent) return
  const word = (sent.reply as unknown[])[0]
  // Nothing was done, so nothing is remembered: asked again, they look again.
  if (['unknown', 'stale', 'canceled', 'ended', 'lost', 'unnamed', 'costly'].includes(word as string)) return
  const before = await world.dump()

  const reply = (await world.repeat(client, sent)) as unknown[]

  deepStrictEqual(await world.dump(), before)
  const expected = [...(sent.reply as unknown[])]
  if (sent.script.name === 'finish-and-claim') {
    const jobs = inLaneOrder(world.model.lease(String(expected[4]))?.jobs ?? [])
    expected[6] = jobs.flatMap((job) => [job.key, claimedTextOf(job)]).join('\x1e')
  }
  deepStrictEqual(reply, expected)
}
