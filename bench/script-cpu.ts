import type { Redis } from 'ioredis'
import { functionNameOf } from '../src/store/library.ts'
import { isReadOnly } from '../src/store/script.ts'
import * as built from '../src/store/scripts.generated.ts'
import { replaceLibrary } from '../test/support/replace-library.ts'

const { library, ...scripts } = built

// How much processor time single scripts take. The server's own log has the time on the wall, and on a machine with fewer
// processors than busy processes most of a long one is the server waiting for a processor: no chunk would be small enough
// for that.

const LIST = 'bench:script-cpu'

/** Puts a clock around each script; those that only read have no part in what is measured, and could not write it down. */
function metering(names: readonly string[]): string {
  return `
local function cpu_micros()
  local info = redis.call("INFO", "cpu")
  local user = string.match(info, "used_cpu_user_main_thread:([%d.]+)")
  local system = string.match(info, "used_cpu_sys_main_thread:([%d.]+)")
  return (user + system) * 1000000
end
for _, name in ipairs({ ${names.map((name) => `"${name}"`).join(', ')} }) do
  local run = scripts[name]
  scripts[name] = function(keys, args)
    local before = cpu_micros()
    local reply = run(keys, args)
    redis.call("RPUSH", "${LIST}", cpu_micros() - before)
    return reply
  end
end
return scripts
end`
}

/**
 * From now on the scripts of this process look at the clock of the server's thread before and after they run and note the
 * difference, which costs each of them some ten microseconds.
 */
export function meterScripts(): void {
  const writing = Object.values(scripts).filter((script) => !isReadOnly(script))
  const names = writing.map(({ name }) => functionNameOf(name))
  replaceLibrary(library.source.replace(/\nreturn scripts\nend$/, () => metering(names)))
}

/** Processor time of each script of metered processes, in milliseconds. */
export async function scriptsCpuMs(meter: Redis): Promise<number[]> {
  const entries = await meter.lrange(LIST, 0, -1)
  if (entries.length === 0) throw new Error('no script was metered')
  return entries.map((micros) => Number(micros) / 1_000)
}
