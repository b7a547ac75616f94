import { type QueueKeys, queueKeys } from '../store/keys.ts'

/**
 * Under which hash tag a queue lives, and its keys there. A process that gives no limits learns it only from the store, when
 * it registers: the keys that were handed out by then are changed in place, before anything is sent to them.
 */
export class QueuePlace {
  /** Of the queue's first client. */
  readonly keys: QueueKeys
  readonly #prefix: string
  readonly #queue: string
  readonly #handedOut: { readonly client: string; readonly keys: QueueKeys }[] = []
  #group: string

  constructor(parts: { prefix: string; queue: string; group: string; client: string }) {
    this.#prefix = parts.prefix
    this.#queue = parts.queue
    this.#group = parts.group
    this.keys = this.keysOf(parts.client)
  }

  get group(): string {
    return this.#group
  }

  keysOf(client: string): QueueKeys {
    const keys = queueKeys(this.#prefix, this.#queue, client, this.#group)
    this.#handedOut.push({ client, keys })
    return keys
  }

  moveTo(group: string): void {
    if (group === this.#group) return
    this.#group = group
    for (const { client, keys } of this.#handedOut) {
      Object.assign(keys, queueKeys(this.#prefix, this.#queue, client, group))
    }
  }
}
