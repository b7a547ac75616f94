import { type AuditReport, isSluiceError, type Queue } from '../../index.ts'
import { levels } from '../../store/names.ts'
import { sayDuration } from '../duration.ts'
import { type Finding, failure, ok, warning } from './finding.ts'

/** Whether its work goes on. */
export async function checkQueue(queue: Queue): Promise<Finding> {
  const check = `queue ${queue.name}`
  try {
    const { counts, paused, levelsPaused, workers, backlog } = await queue.overview({ tenants: 1 })
    const found = `${counts.waiting} wait, ${counts.running} run, ${counts.delayed} are delayed`
    const tool = `sluice top --queue ${queue.name}`
    const resume = `sluice queues resume --queue ${queue.name}`
    if (paused) return warning(check, `paused; ${found}`, `resume it: ${resume}`)
    const pausedOn = levels.filter((level) => levelsPaused[level])
    if (pausedOn.length > 0) {
      const each = pausedOn.map((level) => `${resume} --level ${level}`).join(' && ')
      return warning(check, `paused on ${pausedOn.join(', ')}; ${found}`, `resume it there: ${each}`)
    }
    if (counts.waiting > 0 && workers.length === 0) {
      return warning(
        check,
        `${found}, and no process takes any`,
        `start "sluice worker --only ${queue.name}", or see ${tool}`,
      )
    }
    if (['HIGH', 'CRITICAL'].includes(backlog.level)) {
      const behind = `${found}; ${backlog.level}, all started in ${sayDuration(backlog.etaMs)}`
      return warning(check, behind, `see who is behind, and why: ${tool}`)
    }
    return ok(check, found)
  } catch (error) {
    if (!isSluiceError(error) || error.code !== 'SLUICE_UNKNOWN_QUEUE') throw error
    return ok(check, 'not there yet: it is made by the first process that serves it')
  }
}

const SHOWN = 3

function skippedOf({ skipped }: AuditReport): string {
  if (skipped.length === 0) return ''
  const more = skipped.length > SHOWN ? ` and ${skipped.length - SHOWN} more` : ''
  return `; too large to be looked at: ${skipped.slice(0, SHOWN).join(', ')}${more}`
}

/** What the audit of a queue has found. */
export function auditFinding(queue: string, report: AuditReport, { isRepairing }: { isRepairing: boolean }): Finding {
  const check = `audit of ${queue}`
  const number = Object.values(report.counts).reduce((sum, count) => sum + count, 0)
  const kinds = Object.entries(report.counts).map(([kind, count]) => `${count} ${kind}`)
  const skipped = skippedOf(report)
  if (number > 0 && !isRepairing)
    return failure(check, `${kinds.join(', ')}${skipped}`, 'run it again with --audit --repair')
  const right =
    number > 0
      ? `put right: ${kinds.join(', ')}`
      : `every job of ${report.tenants} tenants is in one place, every count right`
  if (skipped === '') return ok(check, right)
  // Of what nobody looked at nobody can say that it is right.
  return warning(check, right + skipped, 'run it again when the queue has less to do')
}
