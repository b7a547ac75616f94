import { type Level, levels } from '../names.ts'
import type { Requests } from '../requests.ts'
import { readTenant as script } from '../scripts.generated.ts'

export interface FoundTenant {
  readonly fields: Readonly<Record<string, string>>
  /** Until when a limit has parked it, in ms since 1970; Infinity: until a slot is free. */
  readonly parkedUntilMs: number | undefined
  /** What a tenant of weight 1 that was always in line would have been given so far, by level. */
  readonly virtual: Readonly<Record<Level, number>>
}

const NEVER_US = 9e15

/** @param tenant - Its token. */
export async function readTenant(requests: Requests, tenant: string, nowUs = ''): Promise<FoundTenant> {
  const reply = await requests.run('read-tenant', script, () => ({ nowGiven: nowUs, name: tenant }))
  const [, flat, parked, ...virtual] = reply as ['tenant', string[], string, ...string[]]
  const fields: Record<string, string> = Object.create(null)
  for (let at = 0; at < flat.length; at += 2) fields[flat[at] as string] = flat[at + 1] as string
  return {
    fields,
    parkedUntilMs:
      parked === '' ? undefined : Number(parked) >= NEVER_US ? Number.POSITIVE_INFINITY : Number(parked) / 1000,
    virtual: Object.fromEntries(levels.map((level, at) => [level, Number(virtual[at])])) as Record<Level, number>,
  }
}
