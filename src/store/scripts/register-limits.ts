import type { GroupKeys } from '../keys.ts'
import type { Redis } from '../redis.ts'
import { repeatWhileUnavailable } from '../repeat.ts'
import { runScript } from '../script.ts'
import { registerLimits as script } from '../scripts.generated.ts'
import type { LimitRule } from '../settings.ts'

/** Safe to repeat, so it needs no request number. */
export async function registerLimits(
  store: Redis,
  keys: GroupKeys,
  rules: Readonly<Record<string, LimitRule>>,
  options: { isAgain: boolean; giveUpAfterMs?: number; nowUs?: string },
): Promise<void> {
  const redis = store.at(keys.groupLimits)
  await repeatWhileUnavailable(async () => {
    await redis.ready()
    await runScript(redis, script, keys, {
      nowGiven: options.nowUs ?? '',
      server: redis.serverId,
      declared: JSON.stringify(rules),
      isAgain: options.isAgain ? 1 : 0,
    })
  }, options.giveUpAfterMs)
}
