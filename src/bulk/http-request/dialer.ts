import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { unlessAborted } from '../../engine/unless-aborted.ts'
import type { AllowedAddresses } from './allowed-addresses.ts'
import type { Resolve } from './options.ts'

/** Probes that keep a quiet connection known to what stands in between. */
const KEEP_ALIVE_PROBE_MS = 60_000

/**
 * Opens connections to addresses that are allowed, and to no other. A name is resolved once, every address is checked, and
 * the connection is made to exactly those: a name server that answers differently the second time is not asked again.
 */
export class Dialer {
  readonly #addresses: AllowedAddresses
  readonly #resolve: Resolve
  readonly #ca: string | undefined

  constructor(options: { addresses: AllowedAddresses; resolve: Resolve; ca: string | undefined }) {
    this.#addresses = options.addresses
    this.#resolve = options.resolve
    this.#ca = options.ca
  }

  /** Rejects with a Refusal when an address of the host is not allowed, and with the signal's reason when that is aborted. */
  async dial(url: URL, signal: AbortSignal): Promise<Socket> {
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
    const addresses = await this.#addressesOf(host, signal)
    // One bad address spoils the answer: a host that is partly inside is not one that anybody meant to allow.
    for (const address of addresses) this.#addresses.assertAllowed(address, host)

    const isSecure = url.protocol === 'https:'
    const address = { host, port: Number(url.port || (isSecure ? 443 : 80)), lookup: answerOf(addresses) }
    const socket = isSecure
      ? connectTls({
          ...address,
          ALPNProtocols: ['http/1.1'],
          ...(isIP(host) === 0 && { servername: host }),
          ...(this.#ca !== undefined && { ca: this.#ca }),
        })
      : connectTcp(address)
    socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_PROBE_MS)
    await opened(socket, isSecure ? 'secureConnect' : 'connect', signal)
    return socket
  }

  async #addressesOf(host: string, signal: AbortSignal): Promise<readonly string[]> {
    if (isIP(host) !== 0) return [host]
    const addresses = await unlessAborted(this.#resolve(host), signal)
    if (addresses.length === 0) throw new Error(`the host ${host} has no address`)
    return addresses
  }
}

/** A lookup that knows the answer. Node asks it instead of the name server, and tries the addresses in turn. */
function answerOf(addresses: readonly string[]): LookupFunction {
  const answers = addresses.map((address) => ({ address, family: isIP(address) }))
  return (_host, options, callback) => {
    const [first] = answers
    if (options.all) callback(null, answers)
    else callback(null, first?.address ?? '', first?.family)
  }
}

function opened(socket: Socket, event: 'connect' | 'secureConnect', signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => socket.destroy(signal.reason)
    // Stays for good: an error while nobody uses the connection shows when somebody does.
    socket.on('error', (error) => {
      signal.removeEventListener('abort', abort)
      reject(error)
    })
    socket.once(event, () => {
      signal.removeEventListener('abort', abort)
      resolve()
    })
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
  })
}
