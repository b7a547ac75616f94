import { lookup } from 'node:dns/promises'
import {
  callback,
  checkOptions,
  integer,
  optional,
  parsed,
  type Rule,
  type Settings,
  show,
  text,
} from '../../assert.ts'
import { AllowedAddresses } from './allowed-addresses.ts'
import { AllowedHosts } from './allowed-hosts.ts'

/** Finds the addresses of a host. Called once for each new connection; every address it answers is checked. */
export type Resolve = (hostname: string) => Promise<readonly string[]>

/** Options of the built-in processor `http.request`. */
export interface HttpRequestOptions {
  /**
   * The hosts that calls may go to, redirects included: `api.example.com`, `api.example.com:8443`, `*.example.org` for
   * every name below example.org, `*` for every host, `:*` for every port. Without a port, 80 for http and 443 for https.
   * An empty list refuses everything.
   */
  allowHosts: readonly string[]
  /**
   * Addresses and ranges (`127.0.0.1`, `10.0.0.0/8`, `fd00::/8`) that calls may go to although they are private, loopback,
   * link-local or in another way not public. A host in `allowHosts` that has such an address is refused without it.
   * @default none
   */
  allowPrivate?: readonly string[]
  /**
   * How the addresses of a host are found.
   * @default as the system does it
   */
  resolve?: Resolve
  /**
   * How long a call may take, from connecting to the last byte, redirects included; time in which the limits make it wait
   * does not count. Should be less than the time-out of the job, whose message says less.
   * @default 20_000
   */
  timeoutMs?: number
  /**
   * How much of a body is kept, decoded; what goes beyond is not read, and the result says `truncated`. Results that an
   * action keeps have a bound of their own, `maxResultBytes` of the queue, into which this fits also in base64.
   * @default 32_768
   */
  maxResponseBytes?: number
  /**
   * The largest body that is sent.
   * @default 262_144
   */
  maxRequestBytes?: number
  /**
   * Redirects that are followed; each is checked and admitted like the first call. With 0, a redirect is an answer that
   * was not expected.
   * @default 5
   */
  maxRedirects?: number
  /**
   * Connections to one origin at once. A call waits for one before it asks the limits, so that no permit grows old.
   * @default 128
   */
  maxConnections?: number
  /**
   * What is sent as `User-Agent` when the job has none.
   * @default 'sluice'
   */
  userAgent?: string
  /**
   * Certificates, in PEM, that are trusted instead of the well-known ones.
   * @default the well-known ones
   */
  ca?: string
}

const systemResolve: Resolve = async (hostname) => {
  const found = await lookup(hostname, { all: true })
  return found.map(({ address }) => address)
}

const httpRequestRules = {
  allowHosts: parsedList((hosts) => new AllowedHosts(hosts)),
  allowPrivate: parsedList((ranges) => new AllowedAddresses(ranges), []),
  resolve: callback<Resolve>({ default: systemResolve }),
  timeoutMs: integer({ min: 1, max: 86_400_000, default: 20_000 }),
  maxResponseBytes: integer({ min: 0, max: 64 * 1024 * 1024, default: 32_768 }),
  maxRequestBytes: integer({ min: 0, max: 64 * 1024 * 1024, default: 262_144 }),
  maxRedirects: integer({ min: 0, max: 20, default: 5 }),
  maxConnections: integer({ min: 1, max: 10_000, default: 128 }),
  userAgent: text({
    maxLength: 200,
    pattern: { test: /^[\x20-\x7e]+$/, words: 'printable ASCII' },
    default: 'sluice',
  }),
  ca: optional(text({ secret: true })),
}

export type HttpRequestSettings = Settings<typeof httpRequestRules>

export function checkHttpRequestOptions(options: HttpRequestOptions): HttpRequestSettings {
  return checkOptions('http.request', options, httpRequestRules)
}

/** A list of texts as one setting. Each entry is also made alone, so that its problem is reported at its place. */
function parsedList<T>(make: (texts: readonly string[]) => T, missing?: readonly string[]): Rule<T> {
  return (value, path, report) => {
    const list = value ?? missing
    if (list === undefined) report(path, 'is required')
    else if (!Array.isArray(list)) report(path, `must be an array, not ${show(list)}`)
    else {
      const one = parsed((each) => make([asText(each)]))
      let problems = 0
      for (const [index, each] of list.entries()) {
        one(each, `${path}[${index}]`, (...problem) => {
          problems += 1
          report(...problem)
        })
      }
      if (problems === 0) return make(list)
    }
    return undefined as T
  }
}

function asText(value: unknown): string {
  if (typeof value !== 'string') throw new Error(`must be text, not ${show(value)}`)
  return value
}
