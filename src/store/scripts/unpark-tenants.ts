import type { Requests } from '../requests.ts'
import { unparkTenants as script } from '../scripts.generated.ts'

/** How many tenants were put back in line, or will be by the claims that follow. */
export async function unparkTenants(requests: Requests, nowUs = ''): Promise<number> {
  let unparked = 0
  for (;;) {
    const reply = await requests.run(script, () => ({ nowGiven: nowUs }))
    const [word, tenants] = reply as ['unparked' | 'again', number]
    unparked += tenants
    if (word === 'unparked') return unparked
  }
}
