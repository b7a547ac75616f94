/** What an operator asks a store that answers; nothing of it changes anything there. */
import type { Redis } from './redis.ts'
import { parseInfo, type ServerInfo } from './server-info.ts'

/** What each server that has a part of the data says of itself. @param section - Only this part of it. */
export async function readServerInfos(redis: Redis, section?: 'memory'): Promise<ServerInfo[]> {
  const replies = await redis.callEach('INFO', ...(section === undefined ? [] : [section]))
  return replies.map((reply) => parseInfo(String(reply)))
}

/** Runs a script with what ours need: flags, and a library of Redis. It answers 1; rejects with what the server says. */
export function runSmallScript(redis: Redis): Promise<unknown> {
  return redis.call('EVAL', '#!lua flags=no-writes\nreturn cmsgpack.unpack(cmsgpack.pack(1))', 0)
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
