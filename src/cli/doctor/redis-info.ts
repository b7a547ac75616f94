/** The reply of INFO: names and values, from all its sections. */
export type RedisInfo = ReadonlyMap<string, string>

export function parseInfo(reply: string): RedisInfo {
  const lines = reply.split(/\r?\n/).filter((line) => line.includes(':') && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]))
}

export function numberIn(info: RedisInfo, name: string): number {
  return Number(info.get(name) ?? 0)
}
