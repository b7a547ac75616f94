import type { Redis } from 'ioredis'
import { actionOfLane, levels } from '../../src/store/names.ts'
import type { KeyContent, Keyspace } from '../support/keyspace.ts'
import { inAnyOrder, predictActions } from './keyspace-of-actions.ts'
import { named, packed } from './packed.ts'
import { NEVER } from './reference/bucket.ts'
import { parkedWeights } from './reference/congestion.ts'
import type { QueueModel } from './reference/queue-model.ts'
import { claimedTextOf, isDefaultLane, type Job, type Tenant, textOf } from './reference/tenant.ts'

/** What is not predicted: settings as they are packed, who waits to be woken, replies kept, buckets of given ids. */
const NOT_PREDICTED = /^(settings|idle|alarm(:.*)?|ids|ids:.*|client:.*|wake:.*)$/

/** Fields of the queue's and the tenants' hashes that are packed. */
const PACKED = /^(state|pauses|pace|high|normal|low)$/

/** A tenant that has had nothing on a level so far. */
const NOTHING = { lane: '' }

/** Statistics whose names in the queue's hash are others. */
const COUNTED: Readonly<Record<string, string>> = {
  unknownType: 'unknown_type',
  deadLettersExpired: 'dead_expired',
  deadLettersRetried: 'revived',
  deadLettersDiscarded: 'discarded',
  ticksMissed: 'ticks_missed',
}

/**
 * Every key the queue must have now, and what is in it: each job in exactly one place, each tenant in exactly the sets
 * it belongs to, each counter what it counts, and nothing left over.
 */
export function predictKeyspace(model: QueueModel): Keyspace {
  const keys: Record<string, KeyContent> = {}
  const zset = (name: string, entries: readonly (readonly [string, number])[]): void => {
    if (entries.length > 0) keys[name] = { zset: Object.fromEntries(entries) }
  }
  const hash = (name: string, entries: readonly (readonly [string, string])[]): void => {
    if (entries.length > 0) keys[name] = { hash: Object.fromEntries(entries) }
  }
  const list = (name: string, entries: readonly string[]): void => {
    if (entries.length > 0) keys[name] = { list: [...entries] }
  }
  const at = (state: Job['state']): Job[] => model.jobs.filter((job) => job.state === state)

  for (const level of levels) {
    const present = model.tenants.filter(({ stands }) => stands[level].present)
    zset(
      `ready:${level}`,
      present.map(({ name, stands }) => [name, stands[level].score]),
    )
    zset(
      `since:${level}`,
      present.map(({ name, stands }) => [name, stands[level].indexedSince]),
    )
  }
  for (const isLifted of [false, true]) {
    const parked = model.tenants.filter(({ parking }) => parking?.isLifted === isLifted)
    zset(
      isLifted ? 'unparking' : 'parked',
      parked.map(({ name, parking }) => [name, parking?.until ?? 0]),
    )
  }
  zset(
    'paused',
    model.tenants.filter(({ pausedAt }) => pausedAt !== undefined).map((t) => [t.name, t.pausedAt ?? 0]),
  )

  const fronts = model.tenants.flatMap(({ lanes }) => lanes.flatMap(({ front }) => front))
  const delayed = model.jobs.filter(({ state, isLingering }) => state === 'delayed' || isLingering)
  zset(
    'delayed',
    delayed.map((job) => [job.key, job.at]),
  )
  hash(
    'aside',
    [...delayed, ...fronts, ...[...model.trash.values()].flat()].map((job) => [job.key, textOf(job)]),
  )
  zset(
    'leases',
    model.leases.map(({ fence, client, until }) => [`${fence}:${client}`, until]),
  )
  for (const { fence, jobs } of model.leases) {
    hash(
      `claim:${fence}`,
      jobs.map((job) => [job.key, claimedTextOf(job)]),
    )
  }
  zset(
    'dead',
    at('failed').map((job) => [job.key, job.at]),
  )
  hash(
    'dead:jobs',
    at('failed').map((job) => [job.key, `${Math.floor(job.at / 1000)},${job.reason}\n${textOf(job)}`]),
  )
  zset('canceled', [
    ...at('canceled')
      .filter((job) => job.at > 0 && !job.isLingering)
      .map((job) => [job.key, job.at] as const),
    ...at('running')
      .filter(({ isCanceling }) => isCanceling)
      .map((job) => [job.key, NEVER] as const),
  ])

  zset(
    'backlog',
    model.tenants.filter(({ ranked }) => ranked > 0).map(({ name, ranked }) => [name, ranked]),
  )
  hash(
    'running',
    model.tenants
      .map(({ name }) => [name, String(model.jobsOf(name, 'running').length)] as const)
      .filter(([, count]) => count !== '0'),
  )
  for (const tenant of model.tenants) {
    hash(`tenant:${tenant.name}`, predictTenant(model, tenant))
    const own = keys[`tenant:${tenant.name}`]
    if (own && model.isIdle(tenant) && !tenant.hasSettings) own.ttl = true
    const numbers: [string, string][] = []
    for (const lane of tenant.lanes) {
      const id = `${lane.level}:${lane.token}`
      list(`lane:${id}:${tenant.name}`, lane.list.map(textOf))
      list(
        `front:${id}:${tenant.name}`,
        lane.front.map(({ key }) => key),
      )
      if (isDefaultLane(lane)) continue
      if (lane.next !== undefined && actionOfLane(lane.token) === undefined) numbers.push([id, String(lane.next)])
      if (lane.busy) numbers.push([`busy:${id}`, lane.busy.key])
    }
    hash(`lanes:${tenant.name}`, numbers)
    for (const level of levels)
      list(
        `ring:${level}:${tenant.name}`,
        tenant.turns[level].slice(1).map(({ token }) => token),
      )
  }

  const { lostAt } = model.restarts
  hash('limits', [
    ...(lostAt === undefined ? [] : [['@lost', String(lostAt)] as const]),
    ...model.meters,
    ...[...model.jitters].map(
      ([field, { jitter, since, granted, stale, calmSince }]) =>
        [`${field}/jitter`, `${jitter}:${since}:${granted}:${stale}:${calmSince}`] as const,
    ),
  ])
  hash('queue', predictQueue(model))
  Object.assign(keys, predictActions(model))
  return keys
}

function predictQueue(model: QueueModel): [string, string][] {
  const { waiting, delayed, running, ...statistics } = model.counts()
  const { clock, fence, turns, restarts } = model
  const canceling = model.jobs.filter(({ isCanceling }) => isCanceling).length
  const numbers: Record<string, number> = { clock, fence, turns, waiting, delayed, running, canceling }
  const { slot, received, before, earlier, since } = model.pace
  Object.assign(numbers, { slot, starts: model.started - received, starts_before: before, starts_earlier: earlier })
  Object.assign(numbers, { active_since: since, snapshot_due: model.snapshotDue })
  numbers.weights_parked = parkedWeights(model)
  numbers.restarts = restarts.count
  numbers.restarted_at = restarts.lastAt
  numbers.paused = model.paused.queue
  numbers.resumed = model.resumed.queue
  for (const level of levels) {
    numbers[`running:${level}`] = model.jobs.filter((job) => job.state === 'running' && job.standing === level).length
    numbers[`virtual:${level}`] = model.virtual[level]
    numbers[`weights:${level}`] = model.weights[level]
    numbers[`entry:${level}`] = model.entry[level]
    numbers[`round:${level}`] = model.round[level]
    numbers[`reached:${level}`] = model.reached[level]
    numbers[`paused:${level}`] = model.paused[level]
    numbers[`resumed:${level}`] = model.resumed[level]
  }
  const fields: [string, string][] = []
  for (const field of ['state', 'pauses'] as const) fields.push([field, packed(field, numbers)])
  for (const [name, count] of Object.entries(statistics)) {
    if (count !== 0) fields.push([COUNTED[name] ?? name, String(count)])
  }
  for (const [name, count] of Object.entries(model.counted)) {
    if (/^(granted:|denied:|backoff)/.test(name)) fields.push([name, String(count)])
  }
  return fields
}

function predictTenant(model: QueueModel, tenant: Tenant): [string, string][] {
  const { name, lanes, stands, turns } = tenant
  const inFront = lanes.flatMap(({ front }) => front)
  const marked = lanes.flatMap(({ front, list }) => [...front, ...list]).filter(({ state }) => state === 'canceled')
  const state = [model.jobsOf(name, 'waiting').length, model.jobsOf(name, 'delayed').length, tenant.total]
  state.push(inFront.length, marked.length)
  if (tenant.throttles.count > 0) state.push(tenant.throttles.count * 2 ** 33 + tenant.throttles.second)
  const { slot, received, before, earlier, since } = tenant.pace
  const pace = [slot, received, before, earlier, since, tenant.backoff, tenant.uncounted, tenant.costs]
  const fields: [string, string | number | undefined][] = [
    ['state', state.join(' ')],
    ['pace', pace.some((each) => each !== 0) ? pace.join(' ') : undefined],
    ['weight', tenant.weight === 1 ? undefined : tenant.weight],
    ['base', tenant.base || undefined],
    ['override', tenant.override],
    ['paused', tenant.pausedAt],
    ['parked', tenant.parking?.limit],
    ['idle', model.isIdle(tenant) && !tenant.hasSettings ? 1 : undefined],
  ]
  for (const level of levels) {
    const { present, score, kept, longestWait, ...stand } = stands[level]
    const sequence = lanes.find((lane) => lane.level === level && isDefaultLane(lane))?.next ?? 0
    const line = { lanes: turns[level].length, lane: turns[level][0]?.token ?? '', sequence }
    const standing = { ...stand, longest: longestWait, score: present ? score : (kept ?? 0) }
    const text = packed('level', { ...line, ...standing })
    if (text !== packed('level', NOTHING)) fields.push([level, text])
  }
  fields.push(...tenant.meters)
  return fields.flatMap(([field, value]) => (value === undefined ? [] : [[field, String(value)]]))
}

/** MessagePack, and what is packed by a format (see pace.lua), as texts. */
const UNPACK = `
  local unpacked = {}
  for i = 1, #ARGV do
    local value = redis.call("HGET", KEYS[i], ARGV[i])
    local values = ARGV[i] == "pace" and { struct.unpack("<I4dI4I4dI4dd", value) } or { cmsgpack.unpack(value) }
    if ARGV[i] == "pace" then
      -- What comes last is where the reading ended.
      values[#values] = nil
    end
    for j = 1, #values do
      values[j] = type(values[j]) == "number" and string.format("%.17g", values[j]) or tostring(values[j])
    end
    unpacked[i] = values
  end
  return unpacked`

/** The keyspace found, in the words of the prediction: without the prefix, and unpacked. */
export async function readable(redis: Redis, found: Keyspace, prefix: string): Promise<Keyspace> {
  const keys: Record<string, KeyContent> = {}
  const fields: { key: string; field: string; hash: Record<string, string> }[] = []
  for (const [key, content] of Object.entries(found)) {
    const part = key.slice(prefix.length)
    if (NOT_PREDICTED.test(part)) continue
    keys[part] = 'stream' in content ? { stream: inAnyOrder(content.stream) } : content
    if (!('hash' in content) || !/^(queue$|tenant:|action:)/.test(part)) continue
    const {
      settings: _,
      server: __,
      format: _______,
      since: ________,
      limits: ___,
      own_limits: ____,
      costs: ______,
      'aggregated:A': _____,
      ...hash
    } = content.hash
    if (part.startsWith('action:')) for (const field of ['rules', 'watchers']) delete hash[field]
    if (hash.weight !== undefined) hash.weight = String(Number(hash.weight))
    keys[part] = { ...content, hash }
    for (const field of Object.keys(hash)) if (PACKED.test(field)) fields.push({ key, field, hash })
  }
  const names = [...fields.map(({ key }) => key), ...fields.map(({ field }) => field)]
  const unpacked = (await redis.eval(UNPACK, fields.length, ...names)) as string[][]
  fields.forEach(({ key, field, hash }, at) => {
    const values = unpacked[at] as string[]
    const part = key.slice(prefix.length)
    if (part === 'queue') hash[field] = named(field as 'state' | 'pauses', values)
    else if (part.startsWith('action:')) hash[field] = named('action', values)
    else if (field === 'state' || field === 'pace') hash[field] = values.join(' ')
    else hash[field] = named('level', values)
    if (hash[field] === packed('level', NOTHING) || (field === 'pace' && /^[0 ]+$/.test(hash[field])))
      delete hash[field]
  })
  const { queue } = keys
  // What a queue starts with is not written until it changes.
  if (queue && 'hash' in queue) queue.hash = { state: packed('state', {}), pauses: packed('pauses', {}), ...queue.hash }
  return keys
}
