import type { Requests } from '../requests.ts'
import { takeDeadLetter as script } from '../scripts.generated.ts'

export async function takeDeadLetter(
  requests: Requests,
  take: {
    jobKey: string
    retries: boolean
    /** JSON instead of its own. */
    payload?: string
    nowUs?: string
  },
): Promise<'retried' | 'discarded' | 'unknown'> {
  const [word] = await requests.run(script, (request) => ({
    nowGiven: take.nowUs ?? '',
    request,
    job: take.jobKey,
    retries: take.retries ? 1 : 0,
    payload: take.payload ?? '',
  }))
  return word as 'retried' | 'discarded' | 'unknown'
}
