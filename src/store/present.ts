import type { Redis } from './redis.ts'

/** The present as scripts have it, in µs since 1970: the time of the server that has the key, or that of a test's clock. */
export async function readPresentUs(redis: Redis, key: string): Promise<number> {
  if (redis.nowUs !== undefined) return Number(redis.nowUs)
  const [seconds, micros] = (await redis.at(key).call('TIME')) as [string, string]
  return Number(seconds) * 1_000_000 + Number(micros)
}
