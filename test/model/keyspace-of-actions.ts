import type { KeyContent, Keyspace } from '../support/keyspace.ts'
import { packed } from './packed.ts'
import { type Action, countsIn, isOver, marksIn, numbersOf, statisticsOf } from './reference/action.ts'
import type { QueueModel } from './reference/queue-model.ts'

/** Every key that bulk actions must have left by now, and what is in it. */
export function predictActions(model: QueueModel): Keyspace {
  const keys: Record<string, KeyContent> = {}
  const zset = (name: string, entries: readonly (readonly [string, number])[]): void => {
    if (entries.length > 0) keys[name] = { zset: Object.fromEntries(entries) }
  }
  zset('actions', [...model.listed])
  const tenants = new Set([...model.listed.keys()].map((id) => id.split(':')[0] as string))
  for (const tenant of tenants) zset(`actions:${tenant}`, ownActions(model, tenant))
  zset('duties', [...model.duties])
  if (model.dutyTries.size > 0) {
    keys['duties:tries'] = { hash: Object.fromEntries([...model.dutyTries].map(([duty, n]) => [duty, String(n)])) }
  }
  for (const [name, jobs] of model.trash) keys[`trash:${name}`] = { list: jobs.map(({ key }) => key) }
  if (model.events.length > 0) keys.events = { stream: inAnyOrder(model.events.map((line) => line.split(' '))) }
  for (const action of model.actions) Object.assign(keys, predictAction(model, action))
  return keys
}

/** Events of one script may come in any order. */
export function inAnyOrder(stream: readonly string[][]): string[][] {
  return [...stream].sort((a, b) => (a.join(' ') < b.join(' ') ? -1 : 1))
}

function ownActions(model: QueueModel, tenant: string): [string, number][] {
  return [...model.listed].flatMap(([id, made]): [string, number][] =>
    id.startsWith(`${tenant}:`) ? [[id.slice(tenant.length + 1), made]] : [],
  )
}

function predictAction(model: QueueModel, action: Action): Keyspace {
  const keys: Record<string, KeyContent> = {}
  const id = `${action.tenant}:${action.name}`
  const { state, isSealed, received, attempts, throttles, seen, before } = action
  const numbers = {
    state,
    sealed: isSealed ? 1 : 0,
    ...numbersOf(model, action),
    ...countsIn(model, action),
    received,
    marks: marksIn(model, action),
    created: action.createdAt,
    started: action.startedAt,
    ended: action.endedAt,
    last_end: action.lastEndAt,
    attempts,
    throttles,
    errors: action.errors.size,
    notified: action.notifiedAt,
    seen_at: seen.at,
    seen_done: seen.done,
    before_at: before.at,
    before_done: before.done,
    dropped: action.droppedFrom,
  }
  const { webhook, begunBy, aggregate, error } = action
  keys[`action:${id}`] = {
    hash: {
      state: packed('action', numbers),
      ...(webhook !== '' && { webhook }),
      ...(begunBy !== '' && { begun_by: begunBy }),
      ...(aggregate !== undefined && { aggregate }),
      ...(error !== undefined && { error }),
    },
  }
  const statistics = statisticsOf(action)
  if (statistics.length > 0) keys[`stats:${id}`] = { hash: Object.fromEntries(statistics) }
  if (action.letters.length > 0) keys[`letters:${id}`] = { list: action.letters }
  if (action.marked.length > 0) keys[`marks:${id}`] = { set: [...action.marked].sort() }
  if (action.results.size > 0) keys[`results:${id}`] = { hash: Object.fromEntries(action.results) }
  if (action.finished.length > 0) keys[`finished:${id}`] = { list: action.finished }
  if (isOver(action)) for (const content of Object.values(keys)) content.ttl = true
  return keys
}
