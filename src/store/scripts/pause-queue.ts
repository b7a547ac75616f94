import type { Level } from '../names.ts'
import type { Requests } from '../requests.ts'
import { pauseQueue as script } from '../scripts.generated.ts'

export async function pauseQueue(
  requests: Requests,
  change: { level?: Level | undefined; isPaused: boolean; nowUs?: string },
): Promise<void> {
  const args = { nowGiven: change.nowUs ?? '', level: change.level ?? '', pauses: change.isPaused ? 1 : 0 }
  await requests.run(script, () => args)
}
