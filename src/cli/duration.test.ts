import { expect, it } from 'vitest'
import { parseDuration, sayDuration } from './duration.ts'

it.each([
  [0, '0 ms'],
  [850, '850 ms'],
  [12_400, '12 s'],
  [60_000, '1 min'],
  [200_000, '3 min 20 s'],
  [7_500_000, '2 h 5 min'],
])('%d ms is said as %s', (ms, words) => {
  expect(sayDuration(ms)).toBe(words)
})

it.each([
  ['250ms', 250],
  ['30s', 30_000],
  ['1.5 min', 90_000],
  ['2h', 7_200_000],
  ['45', 45_000],
  ['', undefined],
  ['soon', undefined],
  ['5 parsecs', undefined],
])('%j means %s ms', (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})
