import type { QueueKeys } from '../keys.ts'
import type { Redis } from '../redis.ts'
import { runScript } from '../script.ts'
import { readBacklogs as script } from '../scripts.generated.ts'

/** A read of one takes Redis about a microsecond. */
export const BACKLOGS_AT_ONCE = 500

/** How many jobs of each tenant wait, in the order given. @param tenants - Tokens, at most BACKLOGS_AT_ONCE. */
export async function readBacklogs(redis: Redis, keys: QueueKeys, tenants: readonly string[]): Promise<number[]> {
  if (tenants.length === 0) return []
  const reply = await runScript(redis, script, keys, { names: tenants })
  return (reply as ['backlogs', ...number[]]).slice(1) as number[]
}
