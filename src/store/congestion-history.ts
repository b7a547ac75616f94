import type { QueueKeys } from './keys.ts'
import { readPresentUs } from './present.ts'
import type { Redis } from './redis.ts'

/** What was recorded of a queue or a tenant at one moment. Times in ms, instants since 1970. */
export interface CongestionRecord {
  readonly at: number
  readonly waiting: number
  readonly speed: number
  readonly backoffMs: number
  readonly baseBackoffMs: number
  /** Of a tenant its throttles, of the queue its active tenants. */
  readonly count: number
}

/**
 * The newest first, none older than `keepMs`.
 * @param tenant - Its token; undefined for the queue.
 */
export async function readCongestionHistory(
  redis: Redis,
  keys: QueueKeys,
  asked: { tenant: string | undefined; limit: number; keepMs: number },
): Promise<CongestionRecord[]> {
  const key = asked.tenant === undefined ? keys.congestion : `${keys.congestion}:${asked.tenant}`
  const [lines, nowUs] = await Promise.all([
    redis.call('LRANGE', key, 0, asked.limit - 1) as Promise<string[]>,
    readPresentUs(redis, key),
  ])
  const oldest = nowUs / 1_000 - asked.keepMs
  return lines.map(decode).filter(({ at }) => at >= oldest)
}

function decode(line: string): CongestionRecord {
  const [at = 0, waiting = 0, speed = 0, backoffMs = 0, baseBackoffMs = 0, count = 0] = line.split(' ').map(Number)
  return { at, waiting, speed, backoffMs, baseBackoffMs, count }
}
