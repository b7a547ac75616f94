/** What an operator asks a store that answers; nothing of it changes a queue. */
import { queueKeys } from './keys.ts'
import type { Redis } from './redis.ts'
import { runScript } from './script.ts'
import { readSettings } from './scripts.generated.ts'
import { parseInfo, type ServerInfo } from './server-info.ts'

/** What each server that has a part of the data says of itself. @param section - Only this part of it. */
export async function readServerInfos(redis: Redis, section?: 'memory'): Promise<ServerInfo[]> {
  const replies = await redis.callEach('INFO', ...(section === undefined ? [] : [section]))
  return replies.map((reply) => parseInfo(String(reply)))
}

/** Runs one of our scripts, of a queue that is not there. Rejects with what the server says. */
export async function runAnyScript(redis: Redis, prefix: string): Promise<void> {
  const { queue, settings } = queueKeys(prefix, 'doctor', 'doctor')
  await runScript(redis, readSettings, { queue, settings }, { nowGiven: '' })
}

/** How long an answer takes, in ms. */
export async function pingMs(redis: Redis): Promise<number> {
  const before = performance.now()
  await redis.call('PING')
  return performance.now() - before
}

/** The time of one server, in ms since 1970. */
export async function readServerTime(redis: Redis): Promise<number> {
  const [seconds, micros] = (await redis.at('clock').call('TIME')) as [string, string]
  return Number(seconds) * 1_000 + Number(micros) / 1_000
}
