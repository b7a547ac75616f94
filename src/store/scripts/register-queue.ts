import { StoreFormatError } from '../../errors.ts'
import type { QueueKeys } from '../keys.ts'
import type { Redis } from '../redis.ts'
import { repeatWhileUnavailable } from '../repeat.ts'
import { runScript } from '../script.ts'
import { registerQueue as script } from '../scripts.generated.ts'
import type { Declaration } from '../settings.ts'

/**
 * Of what stands in Redis. Another number is for a change that processes of the version before would misread: they refuse
 * to work then, instead of losing jobs. Fields and keys that are only added need none.
 */
const STORE_FORMAT = 1

/**
 * Answers when the store came to know the queue: another instant later on means that it was emptied in between. Safe to
 * repeat, so it needs no request number. Further calls follow while an earlier change of limits still has tenants to put
 * back in line. Rejects with a StoreFormatError where a version of another format has stored the queue.
 * @param options.knewSince - What this answered before; '': this process has not registered the queue yet.
 */
export async function registerQueue(
  store: Redis,
  keys: QueueKeys,
  declaration: Declaration,
  options: { knewSince: string; nowUs?: string },
): Promise<string> {
  const redis = store.at(keys.queue)
  return repeatWhileUnavailable(async () => {
    await redis.ready()
    for (;;) {
      const reply = await runScript(redis, script, keys, {
        nowGiven: options.nowUs ?? '',
        server: redis.serverId,
        declaration: JSON.stringify(declaration),
        format: String(STORE_FORMAT),
        knewSince: options.knewSince,
      })
      const [word, detail] = reply as [string, string]
      if (word === 'registered') return detail
      if (word === 'format') throw formatError(keys, detail)
    }
  })
}

/** Of a queue that is only to be looked at, where nothing is registered. */
export async function assertFormat(redis: Redis, keys: QueueKeys): Promise<void> {
  const stored = (await redis.callWith('HGET', [keys.queue, 'format'])) as string | null
  if (stored !== null && stored !== String(STORE_FORMAT)) throw formatError(keys, stored)
}

function formatError(keys: QueueKeys, stored: string): StoreFormatError {
  const queue = /}:(.*):queue$/.exec(keys.queue)?.[1] ?? keys.queue
  return new StoreFormatError({ queue, stored: Number(stored), known: STORE_FORMAT })
}
