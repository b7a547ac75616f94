import { expect, it } from 'vitest'
import { parseJobKey, placeOfKey } from './job-place.ts'

it('reads where a job stands from its key', () => {
  expect(placeOfKey('low:!a%3Ab:5:c%20d')).toEqual({
    level: 'low',
    lane: 'a:b',
    isOrdered: true,
    action: undefined,
    actionLane: '',
    tenant: 'c d',
    tenantToken: 'c%20d',
  })
})

it('reads the lane of an action', () => {
  expect(placeOfKey('high:@import:5:a')).toMatchObject({
    lane: 'import',
    action: 'import',
    actionLane: '@import',
    isOrdered: false,
  })
  expect(placeOfKey('high:!@import:5:a')).toMatchObject({ lane: 'import', actionLane: '!@import', isOrdered: true })
})

it('answers the same place for jobs of one line that follow each other, and another for any other', () => {
  const place = placeOfKey('normal:default:9:a')

  expect(placeOfKey('normal:default:10:a')).toBe(place)
  expect(placeOfKey('normal:default:11:ba').tenant).toBe('ba')
  expect(placeOfKey('normal:default:12:a').tenant).toBe('a')
  expect(placeOfKey('normal:!default:13:a').isOrdered).toBe(true)
  expect(placeOfKey('high:!default:14:a').level).toBe('high')
})

it('takes for a name whatever stands where one should be, and for no other job', () => {
  const damaged = ['', 'low', 'low:x', 'low:x:5', '::', 'low:%:5:%zz']

  for (const key of damaged) {
    expect(() => placeOfKey(key)).not.toThrow()
    expect(placeOfKey('normal:default:5:x')).toMatchObject({ level: 'normal', lane: 'default', tenant: 'x' })
  }
})

it('reads an id that somebody has given whatever was read before it', () => {
  placeOfKey('normal:default:5:b')

  expect(parseJobKey('normal:default:5:a:b')?.tenant).toBe('a:b')
})
