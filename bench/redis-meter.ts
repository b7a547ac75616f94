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

/** Empties the store and waits until the memory is really given back, so that a side starts from nothing. */
export async function emptyRedis(meter: Redis): Promise<void> {
  await meter.flushall('SYNC')
}

/** Scripts called since the server's start. */
export async function scriptCalls(meter: Redis): Promise<number> {
  const info = await meter.info('commandstats')
  return Number(/^cmdstat_fcall:calls=(\d+)/m.exec(info)?.[1] ?? 0)
}
