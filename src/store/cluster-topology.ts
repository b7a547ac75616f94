import { StoreUnavailableError } from '../errors.ts'
import { answersOf } from './best-answer.ts'
import { Connection, type RedisAddress } from './connection.ts'
import { NewestKnown } from './newest-known.ts'
import { reconnectDelayMs } from './reconnect-delay.ts'
import type { ClusterTarget } from './redis-target.ts'
import { type MoveListener, nameOf, type Whereabouts } from './whereabouts.ts'

/** Which node has which slots, as one of them says. A later epoch has seen a later change. */
interface SlotTable {
  readonly epoch: number
  /** By slot. */
  readonly masters: readonly (RedisAddress | undefined)[]
  /** All nodes it names, replicas too. */
  readonly nodes: readonly RedisAddress[]
}

const SLOTS = 16_384
// So many nodes are asked at once: enough to outvote one that is cut off, few enough for a large Cluster.
const ASKED_AT_ONCE = 5
const MOVED = /^MOVED (\d+) (.*):(\d+)$/

/**
 * Where the slots of a Cluster are. It is asked for when a connection is missing, and again and again until that is
 * there; a node that no longer has a slot says itself who has it (MOVED), so nothing is asked while all is well.
 */
export class ClusterTopology {
  readonly #target: ClusterTarget
  readonly #connecting: { readonly commandTimeoutMs: number; readonly connectionName: string }
  readonly #closing = new AbortController()
  readonly #seekers = new Set<SlotSeeker>()
  readonly #slots = new Set<SlotSeeker>()
  #masters: (RedisAddress | undefined)[] = []
  #nodes: readonly RedisAddress[]
  // A Cluster that is cut in two refuses calls in the smaller part: nothing is lost by asking there.
  readonly #newest = new NewestKnown<SlotTable>({ areAgreed: () => true })
  #asking: Promise<void> | undefined
  #isSeeking = false

  constructor(target: ClusterTarget, options: { commandTimeoutMs: number; connectionName: string }) {
    this.#target = target
    this.#connecting = options
    this.#nodes = target.cluster
  }

  /** Of the master of a slot, for one connection. */
  whereabouts(slot: number): Whereabouts {
    const seeker: SlotSeeker = { slot, listener: undefined }
    this.#slots.add(seeker)
    return {
      find: async () => ({ address: this.#toConnect(await this.#masterOf(slot)) }),
      lost: (reason) => this.#lost(seeker, reason),
      reached: () => this.#reached(seeker),
      onMove: (listener) => {
        seeker.listener = listener
        return () => {
          seeker.listener = undefined
        }
      },
      close: () => {
        this.#slots.delete(seeker)
        this.#reached(seeker)
      },
    }
  }

  /** The masters that have slots, as they stand now. */
  async masters(): Promise<RedisAddress[]> {
    await this.#ask()
    const found = new Map(this.#masters.flatMap((each) => (each ? [[nameOf(each), each] as const] : [])))
    return [...found.values()].map((address) => this.#toConnect(address))
  }

  close(): void {
    this.#closing.abort()
    this.#seekers.clear()
  }

  async #masterOf(slot: number): Promise<RedisAddress> {
    if (!this.#masters[slot]) await this.#ask()
    const master = this.#masters[slot]
    if (!master) throw unavailable(`no node of the Cluster has slot ${slot}`)
    return master
  }

  #reached(seeker: SlotSeeker): void {
    this.#seekers.delete(seeker)
    if (this.#seekers.size === 0) this.#newest.reached()
  }

  #lost(seeker: SlotSeeker, reason: Error): void {
    const [, , host, port] = MOVED.exec(reason.message) ?? []
    if (host !== undefined) {
      const from = this.#masters[seeker.slot]
      this.#masters[seeker.slot] = { host: isHost(host) ? host : from?.host, port: Number(port) }
      return
    }
    if (this.#closing.signal.aborted) return
    this.#seekers.add(seeker)
    this.#newest.lost()
    void this.#seek()
  }

  /** Asks until every connection that was lost is there again, wherever its slot is by then. */
  async #seek(): Promise<void> {
    if (this.#isSeeking) return
    this.#isSeeking = true
    for (let attempt = 1; this.#seekers.size > 0 && !this.#closing.signal.aborted; attempt++) {
      await this.#ask().catch(() => {})
      await new Promise((resolve) => setTimeout(resolve, reconnectDelayMs(attempt)).unref())
    }
    this.#isSeeking = false
  }

  #ask(): Promise<void> {
    this.#asking ??= this.#askSome().finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  async #askSome(): Promise<void> {
    const asked = this.#someNodes()
    const answers = await answersOf(
      asked.map((address) => this.#askOne(address)),
      { enough: Math.floor(asked.length / 2) + 1 },
    )
    const table = this.#newest.believe(answers, false)
    // All that were asked may be behind what a MOVED has told meanwhile.
    if (!answers.includes(table)) return
    const before = this.#masters
    this.#masters = [...table.masters]
    this.#nodes = table.nodes
    for (const { slot, listener } of [...this.#slots]) {
      const master = this.#masters[slot]
      if (master && before[slot] && nameOf(master) !== nameOf(before[slot]))
        listener?.(this.#toConnect(master), 'moved')
    }
  }

  /** Some of the nodes by chance, and one of those that the caller named: they may be all that is left. */
  #someNodes(): RedisAddress[] {
    const known = [...this.#nodes]
    for (let at = known.length - 1; at > 0; at--) {
      const other = Math.floor(Math.random() * (at + 1))
      ;[known[at], known[other]] = [known[other] as RedisAddress, known[at] as RedisAddress]
    }
    const { cluster } = this.#target
    const seed = cluster[Math.floor(Math.random() * cluster.length)] as RedisAddress
    const chosen = new Map(known.slice(0, ASKED_AT_ONCE - 1).map((each) => [nameOf(each), each]))
    return [...chosen.set(nameOf(seed), seed).values()]
  }

  async #askOne(node: RedisAddress): Promise<SlotTable> {
    const address = this.#toConnect(node)
    const connection = await Connection.open({ address, ...this.#connecting, signal: this.#closing.signal })
    try {
      const [info, slots] = await Promise.all([
        connection.send('CLUSTER', ['INFO']),
        connection.send('CLUSTER', ['SLOTS']),
      ])
      return readTable(String(info), slots as SlotRange[], node)
    } catch (error) {
      if (error instanceof StoreUnavailableError) throw error
      throw unavailable(`${nameOf(node)} says: ${(error as Error).message}`, error)
    } finally {
      void connection.close()
    }
  }

  #toConnect(node: RedisAddress): RedisAddress {
    const { username, password, tls, natMap } = this.#target
    const { host, port } = natMap?.[nameOf(node)] ?? node
    return { host, port, username, password, tls }
  }
}

/** A connection to the master of one slot. */
interface SlotSeeker {
  readonly slot: number
  listener: MoveListener | undefined
}

type SlotRange = [from: number, to: number, ...nodes: [host: string | null, port: number, ...rest: unknown[]][]]

/** False where a node does not know the host, or is told not to say it. */
function isHost(host: string | null): host is string {
  return host !== null && host !== '' && host !== '?'
}

/** @param asked - Who answered: a node that does not know its own host means the one it was reached by. */
function readTable(info: string, ranges: readonly SlotRange[], asked: RedisAddress): SlotTable {
  const masters: (RedisAddress | undefined)[] = new Array(SLOTS).fill(undefined)
  const nodes = new Map<string, RedisAddress>()
  for (const [from, to, ...owners] of ranges) {
    const addresses = owners.map(([host, port]) => ({ host: isHost(host) ? host : asked.host, port }))
    for (const address of addresses) nodes.set(nameOf(address), address)
    masters.fill(addresses[0], from, to + 1)
  }
  const epoch = Number(/cluster_current_epoch:(\d+)/.exec(info)?.[1] ?? 0)
  return { epoch, masters, nodes: nodes.size > 0 ? [...nodes.values()] : [asked] }
}

function unavailable(reason: string, cause?: unknown): StoreUnavailableError {
  return new StoreUnavailableError({ reason, outcome: 'not-sent', cause })
}
