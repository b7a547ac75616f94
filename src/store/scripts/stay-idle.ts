import type { Redis } from '../redis.ts'
import { runScript } from '../script.ts'
import { stayIdle as script } from '../scripts.generated.ts'

/** Word, µs to wait (-1: for ever), whether it holds the alarm. */
type Reply = [string, number, number]

/** A client that waits to be woken for a queue. */
export interface Resting {
  /** The key of the queue's state. */
  readonly queueKey: string
  readonly client: string
  readonly levels: string
  /** For how long it waits. */
  readonly idleForMs: number
}

/** What is to be done about a queue. */
export type Rest =
  /** There may be something to claim, or the store does not know the queue. */
  | { readonly word: 'claim' }
  | {
      readonly word: 'idle'
      /** Until the next claim can bring anything; undefined when only a wake-up can tell. */
      readonly waitMs: number | undefined
      /** The client is the one to claim then. */
      readonly holdsAlarm: boolean
    }

/** Answers in the order of the queues, which must be on one server, and in a Cluster in one slot. May be repeated. */
export async function stayIdle(
  redis: Redis,
  resting: readonly Resting[],
  { nowUs = '' }: { nowUs?: string } = {},
): Promise<Rest[]> {
  const [first, ...others] = resting
  if (!first) return []
  const of = ({ client, levels, idleForMs }: Resting) => [client, levels, idleForMs * 1000]
  const queues = [of(first), ...others.map((other) => [other.queueKey, ...of(other)])].flat()
  const args = { nowGiven: nowUs, server: redis.serverId, queues }
  const reply = (await runScript(redis, script, { queue: first.queueKey }, args)) as Reply[]
  return reply.map(([word, waitUs, alarm]) =>
    word === 'idle'
      ? { word, waitMs: waitUs < 0 ? undefined : waitUs / 1000, holdsAlarm: alarm === 1 }
      : { word: 'claim' },
  )
}
