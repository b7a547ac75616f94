import type { QueueKeys } from './keys.ts'
import type { Redis } from './redis.ts'

/** Tenants with work or paused, in no order, each once. Walks the sets they stand in; what changes meanwhile may be missed. */
export async function* readTenantTokens(redis: Redis, keys: QueueKeys): AsyncGenerator<string> {
  const seen = new Set<string>()
  const sets = [keys.readyHigh, keys.readyNormal, keys.readyLow, keys.parked, keys.unparking, keys.paused]
  for (const key of sets) {
    let cursor = '0'
    do {
      const [next, members] = (await redis.call('ZSCAN', key, cursor, 'COUNT', 500)) as [string, string[]]
      cursor = next
      for (let at = 0; at < members.length; at += 2) {
        const tenant = members[at] as string
        if (seen.has(tenant)) continue
        seen.add(tenant)
        yield tenant
      }
    } while (cursor !== '0')
  }
}
