import type { QueueKeys } from '../keys.ts'
import type { Redis } from '../redis.ts'
import { runScript } from '../script.ts'
import { renewLeases as script } from '../scripts.generated.ts'

/** Answers the fences that are no longer the client's. Repeating it does no harm, so it needs no request number. */
export async function renewLeases(
  redis: Redis,
  keys: QueueKeys,
  renewal: { client: string; leaseMs: number; fences: readonly string[]; nowUs?: string },
): Promise<readonly string[]> {
  const reply = await runScript(redis, script, keys, {
    nowGiven: renewal.nowUs ?? '',
    client: renewal.client,
    lease: renewal.leaseMs * 1000,
    fences: renewal.fences,
  })
  return (reply as ['renewed', string[]])[1]
}
