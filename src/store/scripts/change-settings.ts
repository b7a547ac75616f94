import { InvalidOptionsError } from '../../errors.ts'
import type { Requests } from '../requests.ts'
import { changeSettings as script } from '../scripts.generated.ts'
import type { SettingsPatch } from '../settings.ts'

/**
 * Takes effect with the first call; further ones follow while an earlier change still has tenants to put back in line.
 * Rejects with an InvalidOptionsError where a shared limit would be attached a second time, and changes nothing then.
 */
export async function changeSettings(requests: Requests, patch: SettingsPatch, nowUs = ''): Promise<void> {
  for (;;) {
    const args = { nowGiven: nowUs, patch: JSON.stringify(patch) }
    const [word, limit] = (await requests.run(script, () => args)) as [string, string?]
    if (word === 'changed') return
    if (word === 'twice') throw attachedTwice(limit as string)
  }
}

function attachedTwice(limit: string): InvalidOptionsError {
  const problem =
    `would attach the shared limit "${limit}" a second time: a job would be charged twice, or it would have two names. ` +
    'Take it off first where it is attached, with limits.remove'
  return new InvalidOptionsError('limits.change', [{ path: 'limits', problem }])
}
