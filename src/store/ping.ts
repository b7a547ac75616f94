import { StoreUnavailableError } from '../errors.ts'
import type { Redis } from './redis.ts'

/** Resolves when every server that has a part of the data has answered; rejects with StoreUnavailableError after `timeoutMs`. */
export async function pingEach(redis: Pick<Redis, 'callEach'>, timeoutMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new StoreUnavailableError({ reason: `no answer within ${timeoutMs} ms`, outcome: 'unknown' }))
    }, timeoutMs)
  })
  await Promise.race([redis.callEach('PING'), late]).finally(() => clearTimeout(timer))
}
