import type { Requests } from '../requests.ts'
import { takeDuty as script } from '../scripts.generated.ts'

/** Something the queue itself has to do besides jobs. */
export interface Duty {
  /** Its name in the store. */
  readonly id: string
  readonly kind: DutyKind
  /** Of the action; of a dropped list its number. */
  readonly tenant: string
  readonly name: string
  /** Proves that it is still the taker's. */
  readonly fence: string
  /** How often it was tried in vain. */
  readonly tries: number
}

export type DutyKind = 'aggregate' | 'webhook' | 'seal' | 'free'

/** What a process can do. */
export interface DutyTaker {
  /** Kinds it has hands for; with none, it only tells others what is due. */
  readonly kinds: readonly DutyKind[]
  /** Of which it has the aggregate. */
  readonly types: readonly string[]
  readonly leaseMs: number
  /** An aggregate that nobody has had for so long is given to anybody. */
  readonly unknownTypeMs: number
}

export type TakeDutyReply =
  | { readonly word: 'taken'; readonly duty: Duty }
  /** `passed`: duties that are due and not for this taker. */
  | { readonly word: 'none'; readonly passed: number }
  /** There are so many of those that others may be behind them. */
  | { readonly word: 'again' }

export async function takeDuty(requests: Requests, taker: DutyTaker, nowUs = ''): Promise<TakeDutyReply> {
  const reply = await requests.run(script, () => ({
    nowGiven: nowUs,
    lease: taker.leaseMs * 1000,
    kinds: taker.kinds.join(' '),
    unknownFor: taker.unknownTypeMs * 1000,
    types: taker.types,
  }))
  if (reply[0] === 'again') return { word: 'again' }
  if (reply[0] === 'none') return { word: 'none', passed: reply[1] as number }
  const [, id, fence, tries] = reply as ['taken', string, string, number]
  const [kind, tenant = '', name = ''] = id.split(':')
  return { word: 'taken', duty: { id, kind: kind as DutyKind, tenant, name, fence, tries } }
}
