import type { RedisArgument } from './command.ts'
import type { ScriptTimes } from './script-times.ts'

/** Told of the connections of a client, but not of its duplicates, which share its fate. */
export interface ConnectionWatch {
  /** The connection was lost, or could not be made; it is tried again, and this is said each time. */
  lost(connection: object, reason: string): void
  made(connection: object): void
  /** Nobody wants it any more. */
  closed(connection: object): void
}

/**
 * The little of a Redis client that the rest needs. Calls made without a connection wait for one, for as long as a
 * command may take; every promise settles.
 */
export interface Redis {
  /**
   * Identity of the server behind the connection: another one after a restart or failover. Empty before the first, and
   * for a Cluster as a whole: see `at`.
   */
  readonly serverId: string
  /** What scripts are to take for the present, in µs since 1970; undefined: the server's time. For tests. */
  readonly nowUs?: string | undefined
  /** Kept by whoever runs scripts over it. */
  readonly scriptTimes?: ScriptTimes | undefined
  /**
   * Sends one command. Rejects with StoreUnavailableError when it could not be sent, was not answered in time or the
   * connection was lost (its `outcome` says whether it may have run), with StoreOutOfMemoryError when Redis is full,
   * and with any other error of the server as it is. Nothing is ever sent twice.
   */
  call(command: string, ...args: RedisArgument[]): Promise<unknown>
  /** The same with the arguments as an array, which must not be changed before the call has settled. */
  callWith(command: string, args: readonly RedisArgument[]): Promise<unknown>
  /**
   * Sends a command that the server answers within `timeoutMs` by itself, and waits that much longer for the reply.
   * Commands behind it wait too, so it wants a connection of its own: see `duplicate`.
   */
  block(command: string, args: readonly RedisArgument[], timeoutMs: number): Promise<unknown>
  /** Resolves when there is a connection; rejects with the reason when there is none in time, or the server is refused. */
  ready(): Promise<void>
  /**
   * Calls `listener` with the server id after each connect, the first included, before any call that waited is sent.
   * Returns what takes it off again.
   */
  onReconnect(listener: (serverId: string) => void): () => void
  /** Another connection to the same server, closed with this one. */
  duplicate(): Redis
  /**
   * The connection to the server that has this key, and follows it: the same one for keys of one hash tag. In a Cluster
   * only this has an identity and can block; elsewhere it is this very connection.
   */
  at(key: string): Redis
  /** Sends a command without a key to every server that has a part of the data. */
  callEach(command: string, ...args: RedisArgument[]): Promise<unknown[]>
  /**
   * Waits, if `durability` is asked for, until replicas have what the server `serverId` has acknowledged. False: another
   * server has taken its place, and may not have it. Rejects with TooFewReplicasError when they do not have it in time.
   * @param key - Of the client that wrote; its expiry is set once more.
   */
  confirm(key: string, serverId: string): Promise<boolean>
  /** Ends the connection and settles every promise. */
  close(): Promise<void>
}
