import { hash } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import { readWebhook } from '../../store/action-list.ts'
import { fromToken } from '../../store/names.ts'
import { encodeError } from '../../store/record.ts'
import { repeatWhileUnavailable } from '../../store/repeat.ts'
import type { Requests } from '../../store/requests.ts'
import { endAction } from '../../store/scripts/end-action.ts'
import { freeTrash } from '../../store/scripts/free-trash.ts'
import { readActions } from '../../store/scripts/read-actions.ts'
import type { DutyOutcome } from '../../store/scripts/settle-duty.ts'
import type { Duty } from '../../store/scripts/take-duty.ts'
import { Action } from './action.ts'
import type { Webhook } from './action-input.ts'
import { type ActionSummary, toSummary } from './action-view.ts'
import type { Actions } from './actions.ts'
import { makeAggregate } from './aggregate.ts'
import type { Aggregates } from './aggregates.ts'

/** Tells a webhook of an action's end; rejects when it should be told again. */
export type TellWebhook = (webhook: Webhook, id: string, summary: ActionSummary) => Promise<void>

export interface DutyWorkParts {
  readonly name: string
  readonly actions: Actions
  readonly aggregates: Aggregates
  readonly requests: Requests
  readonly clock: Clock
  readonly tellWebhook: TellWebhook | undefined
}

const FREED_AT_ONCE = 1_000

/** Does what a duty asks for; rejects when it did not work. @param stop - Aborted when it is given up. */
export async function doDuty(parts: DutyWorkParts, duty: Duty, stop: AbortController): Promise<DutyOutcome> {
  const { requests } = parts
  switch (duty.kind) {
    case 'seal':
      await endAction(requests, { tenant: duty.tenant, name: duty.name, verb: 'seal' })
      return { outcome: 'done' }
    case 'free':
      while ((await freeTrash(requests, duty.tenant, FREED_AT_ONCE)) > 0);
      return { outcome: 'done' }
    case 'webhook':
      return tellOfEnd(parts, duty)
    case 'aggregate':
      return aggregate(parts, duty, stop)
  }
}

async function tellOfEnd(
  { name: queue, actions, requests, tellWebhook }: DutyWorkParts,
  { tenant, name }: Duty,
): Promise<DutyOutcome> {
  const [found] = await repeatWhileUnavailable(() =>
    readActions(requests, [`${tenant}:${name}`], { withStatistics: true }),
  )
  const text = found && (await readWebhook(actions.redis, actions.keys, tenant, name))
  if (!found || !text) return { outcome: 'done' }
  const summary = toSummary(queue, found)
  await tellWebhook?.(JSON.parse(text) as Webhook, messageId(summary.id, found.createdAt), summary)
  return { outcome: 'done' }
}

async function aggregate(
  { actions, aggregates, requests, clock }: DutyWorkParts,
  { tenant, name }: Duty,
  stop: AbortController,
): Promise<DutyOutcome> {
  const [found] = await repeatWhileUnavailable(() => readActions(requests, [`${tenant}:${name}`]))
  if (!found) return { outcome: 'done' }
  const registered = aggregates.get(found.type)
  // It was given to anybody because nobody has had it for as long as a type may be unknown.
  if (!registered) {
    return { outcome: 'done', error: encodeError(new Error(`no worker has an aggregate for the type "${found.type}"`)) }
  }
  const action = new Action(actions, fromToken(tenant), fromToken(name))
  const made = await makeAggregate(registered, action.results({ order: 'job' }), { clock, stop })
  return { outcome: 'done', aggregate: made }
}

/** The same whenever it is told, so that whoever hears it twice can tell; names may hold what no header can. */
function messageId(action: string, createdAt: number): string {
  return `msg_${hash('sha256', `${action}:${createdAt}`, 'hex').slice(0, 32)}`
}
