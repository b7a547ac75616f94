import { describe, expect, it } from 'vitest'
import { QuotaAccount, RateAccount } from './upstream-accounts.ts'

describe('an account with a rate', () => {
  it('refuses what is too much in a sliding second, and counts it', () => {
    const account = new RateAccount(2)

    expect([0, 400, 900, 1_350, 2_400].map((at) => account.call(at).status)).toEqual([200, 200, 429, 429, 200])
  })

  it('goes by a new rate from the next call on', () => {
    const account = new RateAccount(2)
    account.call(0)
    account.perSecond = 1

    expect(account.call(1).status).toBe(429)
    expect(account.call(1_001).status).toBe(200)
  })
})

describe('an account with a quota', () => {
  it('tells what is left and until when, and starts over then', () => {
    let now = 500
    const account = new QuotaAccount({ left: 2, limit: 9, firstResetInMs: 2_000, resetEveryMs: 5_000 }, () => now)

    const lefts = [account.call(), account.call(), account.call()]
    now = 3_200
    const after = account.call()

    expect(lefts.map(({ status, quota }) => [status, quota?.left])).toEqual([
      [200, 1],
      [200, 0],
      [403, -1],
    ])
    expect(lefts[0]?.headers).toEqual({
      'x-ratelimit-limit': '9',
      'x-ratelimit-remaining': '1',
      'x-ratelimit-reset': '3',
    })
    expect(after).toMatchObject({ status: 200, headers: { 'x-ratelimit-reset': '8' } })
    expect(after.quota).toEqual({ left: 1, window: 1, sinceResetMs: 200 })
  })
})
