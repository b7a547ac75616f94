import { Refusal } from './refusal.ts'

interface HostRule {
  /** As it was given. */
  readonly text: string
  /** A whole host; with `isSuffix`, `.example.org` for `*.example.org` and nothing for `*`. */
  readonly host: string
  readonly isSuffix: boolean
  /** Undefined for the default port of the scheme. */
  readonly port: string | '*' | undefined
}

/**
 * The hosts that calls may go to: `api.example.com`, `api.example.com:8443`, `*.example.org` for every name below
 * example.org (not itself), `*` for every host; `:*` for every port. Without a port, only 80 for http and 443 for https.
 */
export class AllowedHosts {
  readonly #rules: readonly HostRule[]

  /** Throws an Error whose message continues the sentence "<the host> …". */
  constructor(hosts: readonly string[]) {
    this.#rules = hosts.map(parseRule)
  }

  assertAllowed(url: URL): void {
    const hostRules = this.#rules.filter((rule) => matchesHost(rule, url.hostname))
    if (hostRules.some((rule) => matchesPort(rule, url))) return
    if (hostRules.length === 0) throw new Refusal(`The host ${url.hostname} is not in allowHosts (${this.#words()}).`)
    throw new Refusal(
      `The port of ${url.host} is not in allowHosts (${this.#words()}). Add "${url.host}" if that is meant.`,
    )
  }

  /** A few of many: this ends up in the record of each job that is refused. */
  #words(): string {
    const shown = this.#rules.slice(0, 5).map(({ text }) => text)
    const more = this.#rules.length - shown.length
    return shown.length === 0 ? 'which is empty' : shown.join(', ') + (more > 0 ? ` and ${more} more` : '')
  }
}

function matchesHost({ host, isSuffix }: HostRule, hostname: string): boolean {
  if (!isSuffix) return hostname === host
  return hostname.length > host.length && hostname.endsWith(host)
}

/** A URL has no port where it is the default of its scheme. */
function matchesPort({ port }: HostRule, url: URL): boolean {
  if (port === '*') return true
  const isDefault = url.port === ''
  if (port === undefined) return isDefault
  return port === (isDefault ? (url.protocol === 'https:' ? '443' : '80') : url.port)
}

function parseRule(text: string): HostRule {
  const match = /^(\*|\*\.[^:/*[\]]+|\[[^\]]+\]|[^:/*[\]]+)(?::(\*|[1-9]\d{0,4}))?$/.exec(text)
  const [, name = '', port] = match ?? []
  const isSuffix = name.startsWith('*')
  const host = isSuffix ? name.slice(2) : name
  const normal = host === '' ? '' : normalHost(host)
  if (!match || normal === undefined || Number(port ?? 0) > 65_535) {
    throw new Error(
      `must be a host such as "api.example.com", "api.example.com:8443" or "*.example.org", not ${JSON.stringify(text)}`,
    )
  }
  return { text, host: isSuffix && host !== '' ? `.${normal}` : normal, isSuffix, port }
}

/** As URL writes it: lower case, punycode, addresses in their usual form. Undefined for what is more than a host. */
function normalHost(host: string): string | undefined {
  if (/[\s@?#\\%]/.test(host) || !URL.canParse(`http://${host}/`)) return undefined
  return new URL(`http://${host}/`).hostname
}
