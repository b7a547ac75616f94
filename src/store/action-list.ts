import { actionKeys, type QueueKeys } from './keys.ts'
import type { Redis } from './redis.ts'

export interface NamedAction {
  /** `<tenant>:<name>`, tokens. */
  readonly name: string
  /** When it was made, in µs: the next page starts before it. */
  readonly madeUs: string
}

/** A page of a queue's or a tenant's actions, newest first. */
export async function readActionNames(
  redis: Redis,
  keys: QueueKeys,
  page: { tenant: string | undefined; before: string | undefined; count: number },
): Promise<NamedAction[]> {
  const { tenant, before, count } = page
  const key = tenant === undefined ? keys.actions : actionKeys(keys, tenant, '').actions
  const from = before === undefined ? '+inf' : `(${before}`
  const args = [key, from, '-inf', 'WITHSCORES', 'LIMIT', 0, count]
  const flat = (await redis.callWith('ZREVRANGEBYSCORE', args)) as string[]
  const found: NamedAction[] = []
  for (let at = 0; at < flat.length; at += 2) {
    const name = tenant === undefined ? (flat[at] as string) : `${tenant}:${flat[at]}`
    found.push({ name, madeUs: flat[at + 1] as string })
  }
  return found
}

/** The webhook that was given with an action, as JSON. */
export async function readWebhook(redis: Redis, keys: QueueKeys, tenant: string, name: string): Promise<string | null> {
  return (await redis.call('HGET', actionKeys(keys, tenant, name).action, 'webhook')) as string | null
}
