import { expect, it } from 'vitest'
import { isTimeZone, zoneOffsets } from './zone-offsets.ts'

const at = (text: string) => Date.parse(text) / 1_000
const summer2026 = new Date('2026-07-01T12:00:00Z')

/** What the pairs say of an instant. */
function offsetAt(pairs: readonly number[], seconds: number): number {
  let found = 0
  for (let i = 0; i < pairs.length; i += 2) if ((pairs[i] as number) <= seconds) found = pairs[i + 1] as number
  return found
}

it('has the changes of a zone to the second, and what it begins with', () => {
  const pairs = zoneOffsets('Europe/Berlin', summer2026)

  expect(pairs.slice(0, 8)).toEqual([
    0,
    3_600,
    at('2025-03-30T01:00:00Z'),
    7_200,
    at('2025-10-26T01:00:00Z'),
    3_600,
    at('2026-03-29T01:00:00Z'),
    7_200,
  ])
})

it.each([
  ['America/New_York', '2026-01-15T00:00:00Z', -5 * 3_600],
  ['America/New_York', '2026-07-15T00:00:00Z', -4 * 3_600],
  ['Australia/Lord_Howe', '2026-01-15T00:00:00Z', 11 * 3_600],
  ['Australia/Lord_Howe', '2026-07-15T00:00:00Z', 10.5 * 3_600],
  ['Asia/Kathmandu', '2026-07-15T00:00:00Z', 5.75 * 3_600],
  ['UTC', '2026-07-15T00:00:00Z', 0],
])('%s at %s is %i s from UTC', (zone, instant, offset) => {
  expect(offsetAt(zoneOffsets(zone, summer2026), at(instant))).toBe(offset)
})

it('is the same whatever the day of the year', () => {
  expect(zoneOffsets('Europe/Berlin', new Date('2026-01-01T00:00:00Z'))).toEqual(
    zoneOffsets('Europe/Berlin', new Date('2026-12-31T23:59:59Z')),
  )
})

it('tells zones from other names', () => {
  expect(['Europe/Berlin', 'UTC'].map(isTimeZone)).toEqual([true, true])
  expect(['Berlin', '', 5, undefined].map(isTimeZone)).toEqual([false, false, false, false])
})
