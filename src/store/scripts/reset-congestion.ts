import type { Requests } from '../requests.ts'
import { resetCongestion as script } from '../scripts.generated.ts'

/** Answers false for a tenant that the queue does not know. @param tenant - Its token. */
export async function resetCongestion(requests: Requests, tenant: string, nowUs = ''): Promise<boolean> {
  const [word] = await requests.run(script, () => ({ nowGiven: nowUs, name: tenant }))
  return word === 'reset'
}
