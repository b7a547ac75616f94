import { BlockList, isIP } from 'node:net'
import { Refusal } from './refusal.ts'

/**
 * What is not on the public internet, by IANA's registries of special-purpose addresses, and where clouds keep the
 * credentials of a machine. The names are for messages.
 */
const refusedIpv4: readonly (readonly [range: string, name: string])[] = [
  ['0.0.0.0/8', 'unspecified'],
  ['10.0.0.0/8', 'private'],
  ['100.64.0.0/10', 'carrier-grade NAT'],
  ['127.0.0.0/8', 'loopback'],
  // Azure's platform services: the one metadata address that lies in public space.
  ['168.63.129.16/32', 'cloud metadata'],
  ['169.254.0.0/16', 'link-local or cloud metadata'],
  ['172.16.0.0/12', 'private'],
  ['192.0.0.0/24', 'protocol assignment'],
  ['192.0.2.0/24', 'documentation'],
  ['192.88.99.0/24', '6to4 relay'],
  ['192.168.0.0/16', 'private'],
  ['198.18.0.0/15', 'benchmarking'],
  ['198.51.100.0/24', 'documentation'],
  ['203.0.113.0/24', 'documentation'],
  ['224.0.0.0/4', 'multicast'],
  ['240.0.0.0/4', 'reserved or broadcast'],
]

/** IPv6 is the other way round: only global unicast is public, and these parts of it are not. */
const publicIpv6 = '2000::/3'
const refusedIpv6: typeof refusedIpv4 = [
  ['::/128', 'unspecified'],
  ['::1/128', 'loopback'],
  ['::ffff:0:0/96', 'IPv4-mapped'],
  ['64:ff9b::/96', 'IPv4-translated'],
  ['64:ff9b:1::/48', 'IPv4-translated'],
  ['2001::/32', 'Teredo'],
  ['2001::/23', 'protocol assignment'],
  ['2001:db8::/32', 'documentation'],
  ['2002::/16', '6to4'],
  ['3fff::/20', 'documentation'],
  ['fc00::/7', 'unique local'],
  ['fe80::/10', 'link-local'],
  ['ff00::/8', 'multicast'],
]

type Family = 'ipv4' | 'ipv6'

/**
 * Addresses and ranges of both families. Each family has a list of its own, because a BlockList that holds both takes
 * every IPv4 address for a member of `::ffff:0:0/96`.
 */
class Ranges {
  readonly #lists: Readonly<Record<Family, BlockList>> = { ipv4: new BlockList(), ipv6: new BlockList() }

  constructor(ranges: readonly string[]) {
    for (const range of ranges) this.#add(range)
  }

  has(address: string): boolean {
    const family = familyOf(address)
    return family !== undefined && this.#lists[family].check(address, family)
  }

  #add(range: string): void {
    const [address = '', bits, ...rest] = range.split('/')
    const family = familyOf(address)
    const longest = family === 'ipv4' ? 32 : 128
    const prefix = bits === undefined ? longest : /^\d{1,3}$/.test(bits) ? Number(bits) : -1
    const isZoned = address.includes('%')
    if (family === undefined || isZoned || prefix < 0 || prefix > longest || rest.length > 0) {
      throw new Error(`must be an address or a range such as "127.0.0.1" or "10.0.0.0/8", not ${JSON.stringify(range)}`)
    }
    this.#lists[family].addSubnet(address, prefix, family)
  }
}

function familyOf(address: string): Family | undefined {
  const version = isIP(address)
  return version === 4 ? 'ipv4' : version === 6 ? 'ipv6' : undefined
}

const isPublicIpv6 = new Ranges([publicIpv6])
const refusedRanges = [...refusedIpv4, ...refusedIpv6].map(([range, name]) => ({
  name,
  range,
  ranges: new Ranges([range]),
}))

/** The addresses that calls may go to: public ones, and those that were allowed explicitly. */
export class AllowedAddresses {
  readonly #allowed: Ranges

  /** Throws an Error whose message continues the sentence "<the range> …". */
  constructor(allowed: readonly string[]) {
    this.#allowed = new Ranges(allowed)
  }

  /** @param host - The name or address that the caller gave, for the message. */
  assertAllowed(address: string, host: string): void {
    if (this.#allowed.has(address)) return
    const kind = refusedKind(address)
    if (kind === undefined) return
    const what = address === host ? `The address ${address}` : `The host ${host} has the address ${address}, which`
    throw new Refusal(`${what} is not public (${kind}). Allow it with allowPrivate if that is meant.`)
  }
}

function refusedKind(address: string): string | undefined {
  const refused = refusedRanges.find(({ ranges }) => ranges.has(address))
  if (refused) return `${refused.name}, ${refused.range}`
  const isPublic = familyOf(address) === 'ipv4' || isPublicIpv6.has(address)
  return isPublic ? undefined : `outside ${publicIpv6}`
}
