import type { Requests } from '../requests.ts'
import { changeSettings as script } from '../scripts.generated.ts'
import type { SettingsPatch } from '../settings.ts'

/** Takes effect with the first call; further ones follow while an earlier change still has tenants to put back in line. */
export async function changeSettings(requests: Requests, patch: SettingsPatch, nowUs = ''): Promise<void> {
  for (;;) {
    const args = { nowGiven: nowUs, patch: JSON.stringify(patch) }
    const [word] = await requests.run(script, () => args)
    if (word === 'changed') return
  }
}
