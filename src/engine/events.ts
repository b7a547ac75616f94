import { abortSignal, boolean, checkOptions, optional, text } from '../assert.ts'
import { lastEventId, readEvents, type StreamEntry } from '../store/event-stream.ts'
import type { QueueKeys } from '../store/keys.ts'
import { fromToken } from '../store/names.ts'
import type { Redis } from '../store/redis.ts'
import { isStreamId } from '../store/uint64.ts'
import type { EventFeed } from './event-feed.ts'
import type { Registration } from './registration.ts'
import { unlessAborted } from './unless-aborted.ts'

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
  'schedule.missed',
  'audit.repaired',
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
  /** The job's `key`. */
  readonly job?: string
  /**
   * The message of a job that failed, the word for which it died (`discarded`), which limit parked a tenant, or what an
   * audit has put right (a kind of difference).
   */
  readonly reason?: string
  /** The name of the schedule. */
  readonly schedule?: string
  /** How many ticks of the schedule got no job. */
  readonly missed?: number
  /** Of a parked tenant: when it may run again, in ms since 1970. */
  readonly until?: number
  /** Of an audit: the tenant, job, lane, action or claim that was put right; empty for the queue's own counts. */
  readonly subject?: string
}

const rules = {
  from: text({
    pattern: {
      test: (id) => id === '$' || isStreamId(id),
      words: 'an event id, "0" for all that are kept or "$" for new ones',
    },
    default: '$',
  }),
  follow: boolean({ default: true }),
  signal: optional(abortSignal),
}

export interface EventsOptions {
  /** Id of the last event that is known; `0` for all that are kept. @default '$', what happens from now on */
  from?: string
  /** False: end with the last event that there is. @default true */
  follow?: boolean
  /** Ends it. */
  signal?: AbortSignal
}

interface EventSource {
  readonly redis: Redis
  readonly keys: QueueKeys
  readonly feed: EventFeed
  readonly registration: Pick<Registration, 'ready' | 'readable'>
}

/**
 * Events after `from`, for ever or until the signal. At least once and in order: whoever goes on from the last id it has
 * dealt with misses nothing that is still kept (`keepEventsMs`, `maxEvents`). Goes on when Redis was away; throws a
 * ClosedError when it is closed meanwhile.
 * @param onRead - Called whenever Redis has let them be read, also where there were none: every ten seconds then.
 */
export async function* followEvents(
  source: EventSource,
  options: EventsOptions,
  onRead: () => void = () => {},
): AsyncGenerator<QueueEvent, void, undefined> {
  const { from: start, follow, signal } = checkOptions('events', options, rules)
  if (!follow) {
    await source.registration.readable()
    return yield* keptEvents(source, start)
  }
  let last: string
  try {
    last = await unlessAborted(firstId(source, start), signal)
  } catch (error) {
    if (signal?.aborted) return
    throw error
  }
  source.feed.join()
  try {
    while (!signal?.aborted) {
      const found = await source.feed.next(last, signal)
      onRead()
      for (const entry of found) {
        last = entry.id
        yield toEvent(entry)
      }
    }
  } finally {
    source.feed.leave()
  }
}

/** Which event is to be followed by the first. */
async function firstId({ registration, redis, keys }: EventSource, start: string): Promise<string> {
  await registration.ready()
  return start === '$' ? await lastEventId(redis, keys) : start
}

const PAGE = 500

/** What there is at this moment, page by page. */
async function* keptEvents({ redis, keys }: EventSource, from: string): AsyncGenerator<QueueEvent, void, undefined> {
  for (let last = from; last !== '$'; ) {
    const found = await readEvents(redis, keys, { from: last, count: PAGE })
    for (const entry of found) yield toEvent(entry)
    last = found.length < PAGE ? '$' : (found.at(-1)?.id ?? '$')
  }
}

function toEvent({ id, fields }: StreamEntry): QueueEvent {
  const [tenant, action] = [fields.get('tenant'), fields.get('action')]
  const [job, reason, until] = [fields.get('job'), fields.get('reason'), fields.get('until')]
  const [schedule, subject] = [fields.get('schedule'), fields.get('subject')]
  return {
    id,
    at: Number(id.split('-')[0]),
    type: fields.get('type') as QueueEvent['type'],
    ...(tenant === undefined ? {} : { tenant: fromToken(tenant) }),
    ...(action === undefined ? {} : { action: fromToken(action) }),
    ...(job === undefined ? {} : { job }),
    ...(reason === undefined ? {} : { reason }),
    ...(schedule === undefined ? {} : { schedule: fromToken(schedule), missed: Number(fields.get('missed')) }),
    ...(subject === undefined ? {} : { subject }),
    ...(until === undefined ? {} : { until: Math.round(Number(until) / 1_000) }),
  }
}
