import type { QueueKeys } from '../keys.ts'
import type { Redis } from '../redis.ts'
import { runScript } from '../script.ts'
import { closeQueue as script } from '../scripts.generated.ts'

/** Answers whether it is closed: not while it has jobs. Safe to repeat, so it needs no request number. */
export async function closeQueue(store: Redis, keys: QueueKeys, nowUs = ''): Promise<boolean> {
  const redis = store.at(keys.queue)
  await redis.ready()
  const [word] = (await runScript(redis, script, keys, { nowGiven: nowUs })) as [string]
  return word === 'closed'
}
