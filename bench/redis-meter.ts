import type { Redis } from 'ioredis'

/** One field of INFO, as a number. */
async function infoNumber(meter: Redis, section: string, field: string): Promise<number> {
  const info = await meter.info(section)
  const value = new RegExp(`^${field}:(.+)$`, 'm').exec(info)?.[1]
  if (value === undefined) throw new Error(`INFO ${section} has no ${field}`)
  return Number.parseFloat(value)
}

/** Processor time of the whole server, user and system, since its start. */
export async function redisCpuMicros(meter: Redis): Promise<number> {
  const user = await infoNumber(meter, 'cpu', 'used_cpu_user')
  const system = await infoNumber(meter, 'cpu', 'used_cpu_sys')
  return (user + system) * 1_000_000
}

/** What the allocator has given out. Buffers of connected clients are part of it, so close them before asking. */
export async function redisBytes(meter: Redis): Promise<number> {
  return infoNumber(meter, 'memory', 'used_memory')
}

/** Commands as they came over the wire: what a script calls inside is not counted. */
export async function redisRequests(meter: Redis): Promise<number> {
  return infoNumber(meter, 'stats', 'total_commands_processed')
}

/** Time spent in scripts, and calls of them, since the last CONFIG RESETSTAT. */
export async function scriptTime(meter: Redis): Promise<{ calls: number; micros: number }> {
  const info = await meter.info('commandstats')
  let calls = 0
  let micros = 0
  for (const [, callCount, usec] of info.matchAll(/^cmdstat_(?:evalsha|fcall)(?:_ro)?:calls=(\d+),usec=(\d+)/gm)) {
    calls += Number(callCount)
    micros += Number(usec)
  }
  return { calls, micros }
}

/** Empties the store and waits until the memory is really given back, so that a side starts from nothing. */
export async function emptyRedis(meter: Redis): Promise<void> {
  await meter.flushall('SYNC')
}
