import type { GroupKeys } from '../keys.ts'
import type { Redis } from '../redis.ts'
import { repeatWhileUnavailable } from '../repeat.ts'
import { runScript } from '../script.ts'
import { registerLimits as script } from '../scripts.generated.ts'
import type { LimitRule } from '../settings.ts'

/**
 * Answers when the store came to know the group. Safe to repeat, so it needs no request number.
 * @param options.knewSince - What this answered before; '': this process has not registered them yet.
 */
export async function registerLimits(
  store: Redis,
  keys: GroupKeys,
  rules: Readonly<Record<string, LimitRule>>,
  options: { knewSince: string; giveUpAfterMs?: number; nowUs?: string },
): Promise<string> {
  const redis = store.at(keys.groupLimits)
  return repeatWhileUnavailable(async () => {
    await redis.ready()
    const reply = await runScript(redis, script, keys, {
      nowGiven: options.nowUs ?? '',
      server: redis.serverId,
      declared: JSON.stringify(rules),
      knewSince: options.knewSince,
    })
    return (reply as ['registered', string])[1]
  }, options.giveUpAfterMs)
}
