import { describe, expect, it } from 'vitest'
import { allowedPrivate } from './private-hosts.ts'

describe('the private addresses a file of calls may reach', () => {
  it('are none when it names public hosts only', () => {
    expect(allowedPrivate(['api.example.com', '93.184.216.34:8080'], undefined)).toEqual([])
  })

  it.each(['localhost:3000', '127.0.0.1:3000', '[::1]:3000', 'api.localhost'])(
    'are those of this machine when it names %s',
    (host) => {
      expect(allowedPrivate(['api.example.com', host], undefined)).toEqual(['127.0.0.0/8', '::1'])
    },
  )

  it.each(['10.1.2.3', '172.20.0.1:8080', '192.168.1.1', '169.254.169.254', '[fd00::1]', '[fe80::1]:80'])(
    'do not hold %s unless that is allowed',
    (host) => {
      expect(() => allowedPrivate([host], undefined)).toThrow(/private address .* add --allow-private/)
      expect(allowedPrivate([host], ['10.1.2.0/24'])).toEqual(['10.1.2.0/24'])
    },
  )

  it('are all but link-local ones with --allow-private alone', () => {
    expect(allowedPrivate(['10.1.2.3'], true)).toContain('10.0.0.0/8')
    expect(allowedPrivate(['10.1.2.3'], true).some((range) => range.startsWith('169.254'))).toBe(false)
  })
})
