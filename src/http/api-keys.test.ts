import { describe, expect, it } from 'vitest'
import { type ApiKey, createApiKey, KeyRing } from './api-keys.ts'

const now = Date.UTC(2030, 0, 1)

function ringWith(fields: Partial<ApiKey>): { ring: KeyRing; key: string } {
  const { key, hash } = createApiKey()
  return { ring: new KeyRing([{ id: 'k', hash, role: 'admin', ...fields }]), key }
}

describe('a new key', () => {
  it('is 256 bits nobody can guess, with a digest from which it cannot be had', () => {
    const { key, hash } = createApiKey()

    expect(key).toMatch(/^slk_[A-Za-z0-9_-]{43}$/)
    expect(hash).toMatch(/^sha256:[0-9a-f]{64}$/)
    expect(createApiKey().key).not.toBe(key)
  })
})

describe('a key ring', () => {
  it('knows whose key it is', () => {
    const { ring, key } = ringWith({ role: 'tenant', tenant: 'acme', queues: ['mail'] })

    expect(ring.find(key, now)).toEqual({ id: 'k', role: 'tenant', tenant: 'acme', queues: new Set(['mail']) })
  })

  it.each([
    ['of another make', 'malformed', 'secret'],
    ['with something after it', 'malformed', `slk_${'a'.repeat(44)}`],
    ['that nobody has', 'unknown', `slk_${'a'.repeat(43)}`],
  ])('refuses a key %s', (_, refusal, key) => {
    expect(ringWith({}).ring.find(key, now)).toBe(refusal)
  })

  it.each([
    [now + 1, 'admin'],
    ['2030-01-01T00:00:00.001Z', 'admin'],
    [now, 'expired'],
    ['2029-12-31', 'expired'],
  ])('takes a key until %s', (expiresAt, outcome) => {
    const { ring, key } = ringWith({ expiresAt })
    const found = ring.find(key, now)

    expect(typeof found === 'string' ? found : found.role).toBe(outcome)
  })

  it('says of all keys at once what is wrong with them, without showing a digest', () => {
    const { hash } = createApiKey()
    const keys = [
      { id: 'a', hash: 'slk_plain', role: 'admin' },
      { id: 'b', hash, role: 'tenant' },
      { id: 'c', hash, role: 'viewer', tenant: 'acme' },
      { id: 'c', hash, role: 'chief', expiresAt: 'soon' },
    ] as unknown as ApiKey[]

    expect(() => new KeyRing(keys)).toThrow(
      /keys\.0\.hash must be sha256.*keys\.1\.tenant is required.*keys\.2\.tenant is only.*keys\.3\.role.*keys\.3\.expiresAt/s,
    )
    expect(() => new KeyRing(keys)).not.toThrow(/slk_plain/)
  })

  it('refuses two keys of one id', () => {
    const key = { id: 'a', role: 'admin' as const }

    expect(
      () =>
        new KeyRing([
          { ...key, hash: createApiKey().hash },
          { ...key, hash: createApiKey().hash },
        ]),
    ).toThrow('keys.1.id is given twice')
  })
})
