import type { Requests } from '../requests.ts'
import { recordCongestion as script } from '../scripts.generated.ts'

/** Answers of how many tenants something was recorded; 0 when that was done a moment ago. */
export async function recordCongestion(requests: Requests, most: number, nowUs = ''): Promise<number> {
  const [, tenants] = await requests.run(script, () => ({ nowGiven: nowUs, most }))
  return tenants as number
}
