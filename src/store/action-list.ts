import { actionKeys, type QueueKeys } from './keys.ts'
import type { Redis } from './redis.ts'

export interface NamedAction {
  /** `<tenant>:<name>`, tokens. */
  readonly name: string
  /** When it was made, in µs. */
  readonly madeUs: string
}

/** Where a page ends: after this many of the actions that were made in this very microsecond. */
export interface ActionPlace {
  readonly madeUs: string
  readonly passed: number
}

/** A page of a queue's or a tenant's actions, newest first. */
export async function readActionNames(
  redis: Redis,
  keys: QueueKeys,
  page: { tenant: string | undefined; after: ActionPlace | undefined; count: number },
): Promise<NamedAction[]> {
  const { tenant, after, count } = page
  const key = tenant === undefined ? keys.actions : actionKeys(keys, tenant, '').actions
  const args = [key, after?.madeUs ?? '+inf', '-inf', 'WITHSCORES', 'LIMIT', after?.passed ?? 0, count]
  const flat = (await redis.callWith('ZREVRANGEBYSCORE', args)) as string[]
  const found: NamedAction[] = []
  for (let at = 0; at < flat.length; at += 2) {
    const name = tenant === undefined ? (flat[at] as string) : `${tenant}:${flat[at]}`
    found.push({ name, madeUs: flat[at + 1] as string })
  }
  return found
}

/** Where the page ends that these are. @param after - Where it began. */
export function placeAfter(names: readonly NamedAction[], after: ActionPlace | undefined): ActionPlace | undefined {
  const last = names.at(-1)
  if (!last) return undefined
  const here = names.filter(({ madeUs }) => madeUs === last.madeUs).length
  return { madeUs: last.madeUs, passed: here + (after?.madeUs === last.madeUs ? after.passed : 0) }
}

/** The webhook that was given with an action, as JSON. */
export async function readWebhook(redis: Redis, keys: QueueKeys, tenant: string, name: string): Promise<string | null> {
  return (await redis.call('HGET', actionKeys(keys, tenant, name).action, 'webhook')) as string | null
}
