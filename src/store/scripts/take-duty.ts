import type { Requests } from '../requests.ts'
import { takeDuty as script } from '../scripts.generated.ts'

/** Something the queue itself has to do besides jobs. */
export interface Duty {
  /** Its name in the store. */
  readonly id: string
  readonly kind: 'aggregate' | 'webhook' | 'seal' | 'free'
  /** Of the action; of a dropped list its number. */
  readonly tenant: string
  readonly name: string
  /** Proves that it is still the taker's. */
  readonly fence: string
  /** How often it was tried in vain. */
  readonly tries: number
}

export async function takeDuty(
  requests: Requests,
  options: { leaseMs: number; nowUs?: string },
): Promise<Duty | undefined> {
  const args = { nowGiven: options.nowUs ?? '', lease: options.leaseMs * 1000 }
  const reply = await requests.run('take-duty', script, () => args)
  if (reply[0] === 'none') return undefined
  const [, id, fence, tries] = reply as ['taken', string, string, number]
  const [kind, tenant = '', name = ''] = id.split(':')
  return { id, kind: kind as Duty['kind'], tenant, name, fence, tries }
}
