import type { Requests } from '../requests.ts'
import { takeBackAction as script } from '../scripts.generated.ts'

/** False: there is none, or it has received something or is closed, and stays. */
export async function takeBackAction(
  requests: Requests,
  action: { tenant: string; name: string },
  nowUs = '',
): Promise<boolean> {
  const [word] = await requests.run(script, (request) => ({
    nowGiven: nowUs,
    request,
    tenant: action.tenant,
    name: action.name,
  }))
  return word === 'gone'
}
