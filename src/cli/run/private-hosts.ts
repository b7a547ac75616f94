import { BlockList, isIP } from 'node:net'
import { CliError } from '../cli-error.ts'

/** What `--allow-private` alone stands for. Not link-local: there, clouds keep credentials. Name it if it is meant. */
export const privateRanges = [
  '127.0.0.0/8',
  '::1',
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  'fc00::/7',
] as const

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

const lan = new BlockList()
lan.addSubnet('10.0.0.0', 8, 'ipv4')
lan.addSubnet('172.16.0.0', 12, 'ipv4')
lan.addSubnet('192.168.0.0', 16, 'ipv4')
lan.addSubnet('169.254.0.0', 16, 'ipv4')
lan.addSubnet('fc00::', 7, 'ipv6')
lan.addSubnet('fe80::', 10, 'ipv6')

/**
 * The private addresses that calls may go to. A file that names this machine itself (`localhost`, `127.0.0.1`) means
 * it, and whoever runs the file could reach it anyway. Every other private address has to be allowed on the command
 * line, so that a file from elsewhere, or a name that leads inside, does not reach the network of who runs it.
 *
 * @param option - Of `--allow-private`: `true` without ranges.
 */
export function allowedPrivate(
  hosts: Iterable<string>,
  option: true | readonly string[] | undefined,
): readonly string[] {
  if (option !== undefined) return option === true ? privateRanges : option
  let namesThisMachine = false
  for (const host of hosts) {
    if (isIn(lan, nameOf(host))) {
      const problem = `the file calls the private address ${nameOf(host)}; if that is meant, add --allow-private`
      throw new CliError('usage', problem)
    }
    namesThisMachine ||= isLocalHost(host)
  }
  return namesThisMachine ? ['127.0.0.0/8', '::1'] : []
}

/** True for a host, with or without a port, that is this machine by its name. */
export function isLocalHost(host: string): boolean {
  const name = nameOf(host)
  return name === 'localhost' || name.endsWith('.localhost') || isIn(loopback, name)
}

/** Without port and brackets. */
function nameOf(host: string): string {
  return new URL(`http://${host}`).hostname.replace(/^\[(.*)\]$/, '$1')
}

function isIn(list: BlockList, name: string): boolean {
  const version = isIP(name)
  return version !== 0 && list.check(name, version === 6 ? 'ipv6' : 'ipv4')
}
