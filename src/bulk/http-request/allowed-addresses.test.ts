import { describe, expect, it } from 'vitest'
import { AllowedAddresses } from './allowed-addresses.ts'
import { Refusal } from './refusal.ts'

const publicOnly = new AllowedAddresses([])

describe('without exceptions', () => {
  it.each([
    ['0.0.0.0', 'unspecified'],
    ['10.1.2.3', 'private'],
    ['100.64.0.1', 'carrier-grade NAT'],
    ['100.100.100.200', 'carrier-grade NAT'],
    ['127.0.0.1', 'loopback'],
    ['127.255.255.254', 'loopback'],
    ['168.63.129.16', 'cloud metadata'],
    ['169.254.169.254', 'cloud metadata'],
    ['172.16.0.1', 'private'],
    ['172.31.255.255', 'private'],
    ['192.0.0.192', 'protocol assignment'],
    ['192.0.2.1', 'documentation'],
    ['192.168.1.1', 'private'],
    ['198.18.0.1', 'benchmarking'],
    ['224.0.0.1', 'multicast'],
    ['255.255.255.255', 'broadcast'],
    ['::', 'unspecified'],
    ['::1', 'loopback'],
    ['0:0:0:0:0:0:0:1', 'loopback'],
    ['::ffff:127.0.0.1', 'IPv4-mapped'],
    ['::ffff:7f00:1', 'IPv4-mapped'],
    ['::ffff:8.8.8.8', 'IPv4-mapped'],
    ['::127.0.0.1', 'outside 2000::/3'],
    ['64:ff9b::7f00:1', 'IPv4-translated'],
    ['64:ff9b:1::a00:1', 'IPv4-translated'],
    ['2001:0:53aa:64c:0:0:80ff:fffe', 'Teredo'],
    ['2001:db8::1', 'documentation'],
    ['2002:7f00:1::', '6to4'],
    ['fc00::1', 'unique local'],
    ['fd00:ec2::254', 'unique local'],
    ['fe80::1', 'link-local'],
    ['fe80::1%eth0', 'link-local'],
    ['fec0::1', 'outside 2000::/3'],
    ['ff02::1', 'multicast'],
    ['100::1', 'outside 2000::/3'],
    ['4000::1', 'outside 2000::/3'],
    ['localhost', 'outside 2000::/3'],
  ])('%s is refused as %s', (address, kind) => {
    expect(() => publicOnly.assertAllowed(address, address)).toThrow(kind)
    expect(() => publicOnly.assertAllowed(address, address)).toThrow(Refusal)
  })

  it.each([
    '1.1.1.1',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.0',
    '168.63.129.15',
    '172.15.255.255',
    '172.32.0.0',
    '192.167.255.255',
    '223.255.255.255',
    '2606:4700:4700::1111',
    '2a00:1450::1',
    '2003::1',
  ])('%s is allowed', (address) => {
    expect(() => publicOnly.assertAllowed(address, address)).not.toThrow()
  })
})

describe('an exception', () => {
  it('is one address, or a range', () => {
    const allowed = new AllowedAddresses(['127.0.0.1', '10.1.0.0/16', '::1', 'fd00::/8'])

    for (const address of ['127.0.0.1', '10.1.255.3', '::1', 'fd12::1']) {
      expect(() => allowed.assertAllowed(address, address), address).not.toThrow()
    }
    for (const address of ['127.0.0.2', '10.2.0.1', 'fc00::1', '169.254.169.254']) {
      expect(() => allowed.assertAllowed(address, address), address).toThrow(Refusal)
    }
  })

  it('for an IPv4 address does not hold for the IPv6 address that means it', () => {
    const allowed = new AllowedAddresses(['127.0.0.0/8'])

    expect(() => allowed.assertAllowed('::ffff:127.0.0.1', 'x')).toThrow('IPv4-mapped')
  })

  it('for mapped addresses does not open the IPv4 ones', () => {
    const allowed = new AllowedAddresses(['::ffff:0:0/96'])

    expect(() => allowed.assertAllowed('::ffff:10.0.0.1', 'x')).not.toThrow()
    expect(() => allowed.assertAllowed('10.0.0.1', 'x')).toThrow('private')
  })

  it.each([
    '',
    'localhost',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '10.0.0.0/-1',
    '::1/129',
    'fe80::1%eth0',
    '10.0',
  ])('%o is refused with an example', (range) =>
    expect(() => new AllowedAddresses([range])).toThrow('such as "127.0.0.1" or "10.0.0.0/8"'),
  )
})

it('names the host, its address and the rule', () => {
  expect(() => publicOnly.assertAllowed('169.254.169.254', 'metadata.test')).toThrow(
    'The host metadata.test has the address 169.254.169.254, which is not public (link-local or cloud metadata, 169.254.0.0/16). Allow it with allowPrivate if that is meant.',
  )
})
