import { randomBytes } from 'node:crypto'
import { boolean, checkOptions, integer, number, oneOf, optional, type Rule, text } from '../../assert.ts'
import { definedOnly } from '../../defined-only.ts'
import { InvalidOptionsError } from '../../errors.ts'
import { type Level, levels, nameRule, toActionLane } from '../../store/names.ts'
import type { ActionRules } from '../../store/scripts/open-action.ts'
import type { JobInput } from '../submission.ts'

/** One job of an action: whose it is, its level and its lane are the action's. */
export type ActionJobInput = Omit<JobInput, 'tenant' | 'level' | 'lane' | 'ordered'>

/** Jobs submitted together for one tenant. Fields of a job beside `jobs` are defaults for each of them. */
export interface ActionInput extends Omit<ActionJobInput, 'payload' | 'id'> {
  /** Whom it is for. Naming the tenant here, not in each job, is what makes the jobs an action. */
  tenant: string
  jobs: Iterable<ActionJobInput> | AsyncIterable<ActionJobInput>
  /**
   * Its name, unique within the tenant. Submitting under the name of an action that is still open goes on with it.
   * @default a generated one
   */
  action?: string
  /** @default 'normal' */
  level?: Level
  /** One job at a time, in order: the next starts when the one before has ended, its retries included. */
  ordered?: boolean
  /**
   * Seal the action when the jobs have been read: it completes when the last of them has ended. Without, others may add to
   * it, and somebody calls `seal`.
   * @default true
   */
  seal?: boolean
  /**
   * Where to go on in an action that was begun before: `start` sends all jobs, of which those with known ids are skipped;
   * `accepted` leaves out as many as were received before, for jobs without ids that always come in the same order.
   * @default 'start'
   */
  from?: 'start' | 'accepted'
  /**
   * What the caller knows its own action by, such as a digest of a request; kept with an action that this submit makes. With
   * `from: 'accepted'`, an action of that name which another began is not gone on with: what it has received says nothing of
   * these jobs. The submit rejects with ActionClosedError if it is sealed, else with ActionTakenError.
   * @default nobody asks
   */
  begunBy?: string
  /** Keep what each job's handler returns, for `results` and a custom aggregate. @default false */
  keepResults?: boolean
  /** The first job that fails for good ends the action as FAILED. @default false */
  failFast?: boolean
  /** More than this share of all jobs failed ends the action as FAILED, judged from when it is sealed. */
  maxFailureRatio?: number
  /** Seal the action by itself when nobody has added to it for this long; 0 for never. @default 0 */
  sealTimeoutMs?: number
  /** Told when the action ends. */
  webhook?: Webhook
}

/** Who is told of an action's end, by the conventions of Standard Webhooks. */
export interface Webhook {
  /** https, or http. */
  url: string
  /** `whsec_` and 24 to 64 bytes in base64. */
  secret: string
}

/** Before anything is stored: an action that nobody can fill would stay open. */
export const iterable: Rule<ActionInput['jobs']> = (value, path, report) => {
  const isIterable =
    typeof value === 'object' && value !== null && (Symbol.iterator in value || Symbol.asyncIterator in value)
  if (!isIterable) report(path, 'must be an iterable or async iterable')
  return value as ActionInput['jobs']
}

const webhookRule: Rule<Webhook | undefined> = (value, path, report) => {
  if (value === undefined) return undefined
  const { url, secret } = (value ?? {}) as Partial<Webhook>
  if (typeof url !== 'string' || !/^https?:\/\/[^\s/]+/.test(url) || !URL.canParse(url)) {
    report(`${path}.url`, 'must be a URL that starts with https:// or http://')
  }
  if (typeof secret !== 'string' || !isSecret(secret)) {
    report(`${path}.secret`, 'must be "whsec_" followed by 24 to 64 bytes in base64')
  }
  return { url: url as string, secret: secret as string }
}

function isSecret(secret: string): boolean {
  const text = secret.startsWith('whsec_') ? secret.slice('whsec_'.length) : ''
  const bytes = /^[A-Za-z0-9+/]+={0,2}$/.test(text) ? Buffer.from(text, 'base64').length : 0
  return bytes >= 24 && bytes <= 64
}

const rules = {
  jobs: iterable,
  tenant: optional(nameRule),
  action: optional(nameRule),
  type: optional(nameRule),
  level: oneOf(levels, { default: 'normal' }),
  ordered: boolean({ default: false }),
  seal: boolean({ default: true }),
  from: oneOf(['start', 'accepted'], { default: 'start' }),
  begunBy: optional(text({ maxLength: 256 })),
  keepResults: boolean({ default: false }),
  failFast: boolean({ default: false }),
  maxFailureRatio: optional(number({ min: 0, max: 1 })),
  sealTimeoutMs: integer({ min: 0, max: 366 * 86_400_000, default: 0 }),
  webhook: webhookRule,
}

export interface CheckedAction {
  readonly tenant: string
  readonly name: string
  readonly rules: ActionRules
  readonly webhook: Webhook | undefined
  readonly seals: boolean
  readonly from: 'start' | 'accepted'
  readonly begunBy: string | undefined
  readonly jobs: ActionInput['jobs']
  /** Of its jobs. */
  readonly defaults: ActionJobInput
}

/** Of an action to which nobody gave one: sorted by when it was made. */
export function generatedActionName(): string {
  return `${Date.now().toString(36)}-${randomBytes(5).toString('hex')}`
}

export function checkActionInput(input: ActionInput): CheckedAction {
  const { delayMs, runAt, cost, maxRetries, timeoutMs, ...options } = input
  const checked = checkOptions('submit', options, rules)
  if (checked.tenant === undefined) throw new InvalidOptionsError('submit', [{ path: 'tenant', problem: 'is missing' }])
  const { tenant, action = generatedActionName(), level, ordered, type } = checked
  return {
    tenant,
    name: action,
    rules: {
      type: type ?? '',
      level,
      lane: toActionLane(action, ordered),
      keepResults: checked.keepResults,
      failFast: checked.failFast,
      maxFailureRatio: checked.maxFailureRatio,
      sealTimeoutMs: checked.sealTimeoutMs,
    },
    webhook: checked.webhook,
    seals: checked.seal,
    from: checked.from,
    begunBy: checked.begunBy,
    jobs: checked.jobs,
    defaults: definedOnly({ type, delayMs, runAt, cost, maxRetries, timeoutMs }),
  }
}
