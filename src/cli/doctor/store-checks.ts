import { type Sluice, storeOf } from '../../sluice.ts'
import type { Redis } from '../../store/redis.ts'
import { pingMs, readServerInfos, readServerTime, runAnyScript } from '../../store/server-questions.ts'
import { sayDuration } from '../duration.ts'
import { type Finding, failure, ok, warning } from './finding.ts'
import { checkServerInfo, type StoreFacts } from './server-checks.ts'

const PINGS = 50
/** Every claim waits as long. */
const SLOW_MS = 50
const SKEW_MS = 1_000

/** What can be asked of a store that answers. */
export async function checkStore(sluice: Sluice, facts: StoreFacts): Promise<Finding[]> {
  const { redis, prefix } = storeOf(sluice)
  const found = (await readServerInfos(redis)).map((info) => checkServerInfo(info, facts))
  const [only = []] = found
  const ofServers =
    found.length === 1 ? only : found.flatMap((findings, at) => findings.map((finding) => named(finding, at + 1)))
  return [...ofServers, await scripts(redis, prefix), await latency(redis), await clock(redis)]
}

function named(finding: Finding, server: number): Finding {
  return { ...finding, check: `${finding.check}, master ${server}` }
}

/** Whatever the server is called: it must take the scripts as functions, and run them. */
async function scripts(redis: Redis, prefix: string): Promise<Finding> {
  try {
    await runAnyScript(redis, prefix)
    return ok('scripts', 'they run')
  } catch (error) {
    return failure(
      'scripts',
      (error as Error).message,
      'use Redis 7.0 or newer, or Valkey, and let the user of this connection run scripts: ACL SETUSER … +@scripting',
    )
  }
}

async function latency(redis: Redis): Promise<Finding> {
  const took: number[] = []
  for (let at = 0; at < PINGS; at++) took.push(await pingMs(redis))
  const sorted = took.toSorted((a, b) => a - b)
  const [p50 = 0, p99 = 0] = [sorted[Math.floor(PINGS / 2)], sorted.at(-1)]
  const found = `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms of ${PINGS} pings`
  if (p99 < SLOW_MS) return ok('latency', found)
  return warning('latency', found, 'run workers near Redis, and look for slow commands: redis-cli SLOWLOG GET')
}

/** Sluice goes by the clock of Redis; this machine's is in what people are shown, and in tokens that expire. */
async function clock(redis: Redis): Promise<Finding> {
  const before = Date.now()
  const theirs = await readServerTime(redis)
  const skew = theirs - (before + Date.now()) / 2
  const found = `Redis is ${sayDuration(Math.abs(skew))} ${skew >= 0 ? 'ahead of' : 'behind'} this machine`
  if (Math.abs(skew) < SKEW_MS) return ok('clock', found)
  return warning('clock', found, 'let both follow a time server: systemctl enable --now systemd-timesyncd')
}
