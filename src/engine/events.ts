import { checkOptions, optional, text } from '../assert.ts'
import { StoreUnavailableError } from '../errors.ts'
import { lastEventId, readEvents, type StreamEntry } from '../store/event-stream.ts'
import type { QueueKeys } from '../store/keys.ts'
import { fromToken } from '../store/names.ts'
import type { Redis } from '../store/redis.ts'

/** All that a queue tells; docs/events.md has the fields of each. */
export const eventTypes = [
  'action.created',
  'action.dispatched',
  'action.running',
  'action.aggregating',
  'action.completed',
  'action.failed',
  'action.canceled',
  'job.failed',
  'job.dead',
  'job.stalled',
  'tenant.parked',
  'limits.changed',
] as const

/** Something that happened in a queue. */
export interface QueueEvent {
  /** Where to go on: give it as `from` to get what came after. */
  readonly id: string
  /** In ms since 1970, by the clock of Redis. */
  readonly at: number
  readonly type: (typeof eventTypes)[number]
  readonly tenant?: string
  /** The action's name. */
  readonly action?: string
  /** The job's generated id. */
  readonly job?: string
  /** Why a job failed or died, or which limit parked a tenant. */
  readonly reason?: string
  /** Of a parked tenant: when it may run again, in ms since 1970. */
  readonly until?: number
}

// How long one blocking read waits: short enough to notice a connection that went dead.
const BLOCK_MS = 10_000
const RETRY_MS = 100
const PAGE = 500

const rules = {
  from: text({
    maxLength: 40,
    pattern: { test: /^(\$|\d+(-\d+)?)$/, words: 'an event id, "0" for all that are kept or "$" for new ones' },
    default: '$',
  }),
}

/**
 * Events after `from`, for ever or until the signal. At least once and in order: whoever goes on from the last id it has
 * dealt with misses nothing that is still kept (`keepEventsMs`, `maxEvents`). Goes on when Redis was away; throws a
 * ClosedError when it is closed meanwhile.
 */
export async function* followEvents(
  source: { redis: Redis; keys: QueueKeys },
  options: { from?: string; signal?: AbortSignal },
): AsyncGenerator<QueueEvent, void, undefined> {
  const { signal } = options
  const { from } = checkOptions('events', { from: options.from }, { from: optional(rules.from) })
  const start = from ?? '$'
  let last = start === '$' ? await lastEventId(source.redis, source.keys) : start
  const blocking = source.redis.duplicate()
  const close = () => void blocking.close()
  signal?.addEventListener('abort', close, { once: true })
  try {
    while (!signal?.aborted) {
      for (const entry of await readNext(blocking, source.keys, last, signal)) {
        last = entry.id
        yield toEvent(entry)
      }
    }
  } finally {
    signal?.removeEventListener('abort', close)
    await blocking.close()
  }
}

async function readNext(
  redis: Redis,
  keys: QueueKeys,
  from: string,
  signal: AbortSignal | undefined,
): Promise<StreamEntry[]> {
  try {
    return await readEvents(redis, keys, { from, count: PAGE, blockMs: BLOCK_MS })
  } catch (error) {
    if (signal?.aborted) return []
    if (!(error instanceof StoreUnavailableError)) throw error
    // Cut off: the connection comes back by itself, and what happens meanwhile is in the stream.
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    return []
  }
}

function toEvent({ id, fields }: StreamEntry): QueueEvent {
  const [tenant, action] = [fields.get('tenant'), fields.get('action')]
  const [job, reason, until] = [fields.get('job'), fields.get('reason'), fields.get('until')]
  return {
    id,
    at: Number(id.split('-')[0]),
    type: fields.get('type') as QueueEvent['type'],
    ...(tenant === undefined ? {} : { tenant: fromToken(tenant) }),
    ...(action === undefined ? {} : { action: fromToken(action) }),
    ...(job === undefined ? {} : { job }),
    ...(reason === undefined ? {} : { reason }),
    ...(until === undefined ? {} : { until: Math.round(Number(until) / 1_000) }),
  }
}
