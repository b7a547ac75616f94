import { describe, expect, it } from 'vitest'
import { UpstreamLedger } from './upstream-ledger.ts'

const statuses = (ledger: UpstreamLedger, times: readonly number[]) =>
  times.map((at) => ledger.note(`/${at}`, at).status)

describe('the ledger of an upstream', () => {
  it('allows the limit in a window, and refuses one more', () => {
    const ledger = new UpstreamLedger({ limit: 3, windowMs: 1_000 })

    expect(statuses(ledger, [0, 500, 999.9, 999.95])).toEqual([200, 200, 200, 429])
    expect(ledger.violations).toBe(1)
    expect(ledger.busiest()).toBe(4)
  })

  it('lets the window slide: it is not the second of a clock that counts', () => {
    const ledger = new UpstreamLedger({ limit: 2, windowMs: 1_000 })

    expect(statuses(ledger, [900, 950, 1_050, 1_900])).toEqual([200, 200, 429, 429])
  })

  it('takes a call when the one that many calls before is a whole window old', () => {
    const ledger = new UpstreamLedger({ limit: 2, windowMs: 1_000 })

    expect(statuses(ledger, [0, 10, 1_000, 1_010])).toEqual([200, 200, 200, 200])
    expect(ledger.violations).toBe(0)
    expect(ledger.busiest()).toBe(2)
  })

  it('counts calls that it refused', () => {
    const ledger = new UpstreamLedger({ limit: 1, windowMs: 1_000 })

    expect(statuses(ledger, [0, 600, 1_200])).toEqual([200, 429, 429])
  })
})
