import type { Redis } from 'ioredis'
import * as scripts from '../src/store/scripts.generated.ts'
import { replaceScript } from '../test/support/replace-script.ts'

// How much processor time single scripts take. The server's own log has the time on the wall, and on a machine with fewer
// processors than busy processes most of a long one is the server waiting for a processor: no chunk would be small enough
// for that.

const LIST = 'bench:script-cpu'

const CLOCK = `
local function cpu_micros()
  local info = redis.call("INFO", "cpu")
  local user = string.match(info, "used_cpu_user_main_thread:([%d.]+)")
  local system = string.match(info, "used_cpu_sys_main_thread:([%d.]+)")
  return (user + system) * 1000000
end`

/**
 * From now on the scripts of this process look at the clock of the server's thread before and after they run and note the
 * difference, which costs each of them some ten microseconds.
 */
export function meterScripts(): void {
  for (const script of Object.values(scripts)) {
    // They have no part in what is measured, and could not write it down.
    if (script.isReadOnly) continue
    replaceScript(script, metered(script.source))
  }
}

function metered(source: string): string {
  const headEnd = source.indexOf('\n')
  return `${source.slice(0, headEnd)}
local function measured()${source.slice(headEnd)}
end
${CLOCK}
local before = cpu_micros()
local reply = measured()
redis.call("RPUSH", "${LIST}", cpu_micros() - before)
return reply
`
}

/** Processor time of each script of metered processes, in milliseconds. */
export async function scriptsCpuMs(meter: Redis): Promise<number[]> {
  const entries = await meter.lrange(LIST, 0, -1)
  if (entries.length === 0) throw new Error('no script was metered')
  return entries.map((micros) => Number(micros) / 1_000)
}
