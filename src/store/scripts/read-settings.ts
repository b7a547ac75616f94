import { type Level, levels } from '../names.ts'
import type { Requests } from '../requests.ts'
import { readSettings as script } from '../scripts.generated.ts'
import type { SettingValues } from '../settings.ts'

/** How a queue is set now: what its code declares with what operators changed on top. */
export interface FoundSettings {
  readonly values: SettingValues
  /** Since when, in ms since 1970; undefined: it is not paused. */
  readonly pausedSince: number | undefined
  readonly levelsPausedSince: Readonly<Record<Level, number | undefined>>
}

export async function readSettings(requests: Requests, nowUs = ''): Promise<FoundSettings> {
  const reply = await requests.run(script, () => ({ nowGiven: nowUs }))
  const [, declared, changed, paused, ...levelPauses] = reply as ['settings', ...string[]]
  const values = { ...valuesIn(declared), ...valuesIn(changed) } as SettingValues
  const pauses = levels.map((level, at) => [level, instantMs(levelPauses[at])])
  return { values, pausedSince: instantMs(paused), levelsPausedSince: Object.fromEntries(pauses) }
}

function valuesIn(json: string | undefined): Partial<SettingValues> {
  return (JSON.parse(json ?? '{}') as { values?: Partial<SettingValues> }).values ?? {}
}

function instantMs(us: string | undefined): number | undefined {
  return us === undefined || us === '0' ? undefined : Number(us) / 1000
}
