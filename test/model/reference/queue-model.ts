import type { Level } from '../../../src/store/names.ts'
import type { AdmitReply } from '../../../src/store/scripts/admit-job.ts'
import type { CancelReply } from '../../../src/store/scripts/cancel-job.ts'
import type { TenantPatch } from '../../../src/store/scripts/change-tenant.ts'
import type { ClaimReply, ClaimRequest } from '../../../src/store/scripts/finish-and-claim.ts'
import type { ActionState, OpenedAction } from '../../../src/store/scripts/open-action.ts'
import type { FoundAction } from '../../../src/store/scripts/read-actions.ts'
import type { QueueCounts } from '../../../src/store/scripts/read-counts.ts'
import type { LimitRow } from '../../../src/store/scripts/read-limits.ts'
import type { FoundTenant } from '../../../src/store/scripts/read-tenant.ts'
import type { DutyOutcome } from '../../../src/store/scripts/settle-duty.ts'
import type { SubmitLine, SubmitReply } from '../../../src/store/scripts/submit-jobs.ts'
import type { Duty, DutyTaker, TakeDutyReply } from '../../../src/store/scripts/take-duty.ts'
import type { Declaration, SettingsPatch } from '../../../src/store/settings.ts'
import { endAction, forgetAction, openAction, takeBackAction, watchAction } from './acting.ts'
import { type Action, viewOf } from './action.ts'
import { finishAndClaim } from './claiming.ts'
import { cancelJob, changeSettings, changeTenant, declareSettings, pauseQueue, takeDeadLetter } from './control.ts'
import { freeTrash, settleDuty, takeDuty } from './duties.ts'
import { admitJob, renewLeases } from './leases.ts'
import { comeBack } from './limits.ts'
import { QueueState } from './queue-state.ts'
import { countsOf, deadLetters, type JobAnswer, limitRows, readJob, readTenant } from './reading.ts'
import { addressed, submit } from './submitting.ts'
import type { Job } from './tenant.ts'

/**
 * The queue as the specification has it, told what time it is. It answers what the scripts must answer. Who is woken,
 * and who holds the alarm, is not part of it.
 */
export class QueueModel extends QueueState {
  submit(lines: readonly SubmitLine[], now: number): SubmitReply {
    return submit(this, lines, now)
  }

  addressed(job: Job, now: number): Job | undefined {
    return addressed(this, job, now)
  }

  claim(client: string, request: ClaimRequest, now: number): ClaimReply {
    return finishAndClaim(this, client, request, now)
  }

  renew(client: string, fences: readonly string[], leaseMs: number, now: number): string[] {
    return renewLeases(this, client, fences, leaseMs, now)
  }

  admit(fence: string, jobKey: string, standing: Level, now: number): AdmitReply {
    return admitJob(this, fence, jobKey, standing, now)
  }

  cancel(job: Job | undefined, now: number): CancelReply {
    return cancelJob(this, job, now)
  }

  comeBack(now: number): void {
    comeBack(this, now)
  }

  declare(declaration: Declaration, now: number): void {
    declareSettings(this, declaration, now)
  }

  changeSettings(patch: SettingsPatch, now: number): void {
    changeSettings(this, patch, now)
  }

  changeTenant(name: string, patch: TenantPatch, now: number): void {
    changeTenant(this, name, patch, now)
  }

  pauseQueue(level: Level | undefined, isPaused: boolean, now: number): void {
    pauseQueue(this, level, isPaused, now)
  }

  takeDeadLetter(job: Job, retries: boolean, now: number): 'retried' | 'discarded' | 'unknown' {
    return takeDeadLetter(this, job, retries, now)
  }

  openAction(opened: Parameters<typeof openAction>[1], now: number): OpenedAction {
    return openAction(this, opened, now)
  }

  endAction(ended: Parameters<typeof endAction>[1], now: number): ActionState | undefined {
    return endAction(this, ended, now)
  }

  takeBackAction(action: { tenant: string; name: string }, now: number): boolean {
    return takeBackAction(this, action, now)
  }

  watchAction(watched: Parameters<typeof watchAction>[1], now: number): boolean {
    return watchAction(this, watched, now)
  }

  readAction(tenant: string, name: string, withStatistics: boolean, now: number): FoundAction | undefined {
    this.begin(now)
    const action = this.action(tenant, name)
    return action && viewOf(this, action, now, withStatistics)
  }

  forgetAction(action: Action): void {
    forgetAction(this, action)
  }

  takeDuty(taker: DutyTaker, now: number): TakeDutyReply {
    return takeDuty(this, taker, now)
  }

  settleDuty(duty: Pick<Duty, 'id' | 'fence'>, became: DutyOutcome, now: number): string | undefined {
    return settleDuty(this, duty, became, now)
  }

  freeTrash(name: string, most: number, now: number): number {
    return freeTrash(this, name, most, now)
  }

  counts(): QueueCounts {
    return countsOf(this)
  }

  readJob(job: Job | undefined, now: number): JobAnswer {
    return readJob(this, job, now)
  }

  deadLetters(now: number): Job[] {
    return deadLetters(this, now)
  }

  limitRows(name: string, now: number): { activeTenants: number; rows: LimitRow[] } {
    return limitRows(this, name, now)
  }

  readTenant(name: string): FoundTenant {
    return readTenant(this, name)
  }
}
