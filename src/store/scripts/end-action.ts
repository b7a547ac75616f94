import type { Requests } from '../requests.ts'
import { endAction as script } from '../scripts.generated.ts'
import type { ActionState } from './open-action.ts'

/** Undefined: there is no such action, or not any more. */
export async function endAction(
  requests: Requests,
  action: { tenant: string; name: string; verb: 'seal' | 'cancel' | 'judge' },
  nowUs = '',
): Promise<ActionState | undefined> {
  const [word, state] = await requests.run(script, (request) => ({
    nowGiven: nowUs,
    request,
    tenant: action.tenant,
    name: action.name,
    verb: action.verb,
  }))
  return word === 'done' ? (state as ActionState) : undefined
}
