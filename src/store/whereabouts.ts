import type { RedisAddress } from './connection.ts'
import { ensureEmbeddedServer } from './embedded.ts'

/** A server to connect to. */
export interface Place {
  readonly address: RedisAddress
  /** Says who it is, where its `run_id` does not. Asked after connecting. */
  serverId?(): Promise<string>
}

/** @param how - `replaced`: another has taken its place, and what it still says may be lost. */
export type MoveListener = (address: RedisAddress, how: 'moved' | 'replaced') => void

/** Knows where the server is that one connection, made again and again, is for. */
export interface Whereabouts {
  /** Asked before each try. Rejects with a StoreUnavailableError when nobody knows. */
  find(signal: AbortSignal): Promise<Place>
  /** The connection was lost or could not be made: from now on it is looked for. */
  lost(reason: Error): void
  /** The connection is there. */
  reached(): void
  /** Calls `listener` when the server is heard to be elsewhere. Returns what takes it off again. */
  onMove(listener: MoveListener): () => void
  /** No connection will be made any more. */
  close(): void
}

/** A server that stays where it is. */
export function atAddress(address: RedisAddress): Whereabouts {
  return staying(async () => ({ address }))
}

/** The private server of a data folder, started by whoever comes first. */
export function embedded(dataDir: string): Whereabouts {
  return staying(async () => {
    const server = await ensureEmbeddedServer({ dataDir })
    return { address: { path: server.socketPath }, serverId: () => server.serverId() }
  })
}

function staying(find: () => Promise<Place>): Whereabouts {
  return { find, lost: () => {}, reached: () => {}, onMove: () => () => {}, close: () => {} }
}

/** `host:port` or the path of the socket: equal for one server. */
export function nameOf(address: RedisAddress): string {
  return address.path ?? `${address.host ?? 'localhost'}:${address.port ?? 6379}`
}
