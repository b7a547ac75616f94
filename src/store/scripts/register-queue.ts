import type { QueueKeys } from '../keys.ts'
import type { Redis } from '../redis.ts'
import { repeatWhileUnavailable } from '../repeat.ts'
import { runScript } from '../script.ts'
import { registerQueue as script } from '../scripts.generated.ts'
import type { DeclaredSettings } from '../settings.ts'

const REPEATED_FOR_MS = 45_000

/**
 * Safe to repeat, so it needs no request number. Further calls follow while an earlier change of limits still has tenants
 * to put back in line.
 */
export async function registerQueue(
  store: Redis,
  keys: QueueKeys,
  declared: DeclaredSettings,
  options: { isAgain: boolean; nowUs?: string },
): Promise<void> {
  const redis = store.at(keys.queue)
  await repeatWhileUnavailable(async () => {
    await redis.ready()
    for (;;) {
      const reply = await runScript(redis, script, keys, {
        nowGiven: options.nowUs ?? '',
        server: redis.serverId,
        declared: JSON.stringify(declared),
        isAgain: options.isAgain ? 1 : 0,
      })
      if ((reply as readonly unknown[])[0] === 'registered') return
    }
  }, REPEATED_FOR_MS)
}
