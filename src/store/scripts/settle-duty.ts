import type { Requests } from '../requests.ts'
import { settleDuty as script } from '../scripts.generated.ts'
import type { Duty } from './take-duty.ts'

export type DutyOutcome =
  /** It takes longer: the lease starts anew. */
  | { readonly outcome: 'renewed'; readonly afterMs: number }
  /** It did not work. */
  | { readonly outcome: 'again'; readonly afterMs: number }
  /** Of an aggregate: JSON, or why there is none, which fails the action. */
  | { readonly outcome: 'done'; readonly aggregate?: string; readonly error?: string }

/** The fence from now on; undefined when somebody else has the duty by now. */
export async function settleDuty(
  requests: Requests,
  duty: Pick<Duty, 'id' | 'fence'>,
  became: DutyOutcome,
  nowUs = '',
): Promise<string | undefined> {
  const [word, fence] = await requests.run(script, (request) => ({
    nowGiven: nowUs,
    request,
    duty: duty.id,
    fence: duty.fence,
    outcome: became.outcome,
    after: became.outcome === 'done' ? 0 : Math.round(became.afterMs * 1000),
    aggregate: became.outcome === 'done' ? (became.aggregate ?? '') : '',
    error: became.outcome === 'done' ? (became.error ?? '') : '',
  }))
  return word === 'settled' ? (fence as string) : undefined
}
