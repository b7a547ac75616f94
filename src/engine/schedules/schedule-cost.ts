import { InvalidOptionsError } from '../../errors.ts'
import { toToken } from '../../store/names.ts'
import { repeatWhileUnavailable } from '../../store/repeat.ts'
import type { Requests } from '../../store/requests.ts'
import { type LimitRow, readLimits } from '../../store/scripts/read-limits.ts'
import type { ScheduleJob } from './schedule-input.ts'

/**
 * Refuses jobs that cost more than a limit they will stand under could ever grant, as submitting them does: at its tick there is
 * nobody to tell. A limit that is lowered later lets them pass at all it has.
 */
export async function checkScheduleCost(requests: Requests, name: string, job: ScheduleJob): Promise<void> {
  const { cost = 1, level = 'normal', tenant = 'default' } = job
  if (cost === 1) return
  const { rows } = await repeatWhileUnavailable(() => readLimits(requests, toToken(tenant)))
  const isMet = ({ scope, kind }: LimitRow) =>
    (scope === 'queue' || scope === 'tenant' || scope === level) && (kind === 'bucket' || kind === 'window')
  const [least] = rows.filter(isMet).sort((a, b) => a.limit - b.limit)
  if (!least || cost <= least.limit) return
  const problem = `is ${cost}, more than the limit "${least.name}" could ever grant (${least.limit})`
  throw new InvalidOptionsError(`schedule "${name}"`, [{ path: 'job.cost', problem }])
}
