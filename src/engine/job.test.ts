import { expect, it } from 'vitest'
import { encodeRecord } from '../store/record.ts'
import { decodeJobs, LeasedJob } from './job.ts'

const text = encodeRecord('rs', 'SEND', '', '', '{"a":[]}')

it('reads a job from its key and record', () => {
  const [job] = decodeJobs('9', ['low:!a%3Ab:5:c%20d', text], [])

  expect(job).toMatchObject({
    id: 'low:!a%3Ab:5:c%20d',
    fence: '9',
    tenant: 'c d',
    lane: 'a:b',
    level: 'low',
    standing: 'low',
    type: 'SEND',
    payload: { a: [] },
    attempt: 1,
    createdAt: 1_000,
  })
})

it('goes by the id it was given', () => {
  expect(new LeasedJob('normal:default:5:a', '9', encodeRecord('rs', 'T', 'order-1', '', 'null')).id).toBe('order-1')
})

it('knows the level it stood on where that is not its own', () => {
  const [job] = decodeJobs('9', ['low:default:5:a', `^high\n${text}`], [])

  expect(job).toMatchObject({ level: 'low', standing: 'high', type: 'SEND', payload: { a: [] } })
})

it('counts runs that failed, and nothing else, as attempts', () => {
  expect(new LeasedJob('normal:default:5:a', '9', `2,1,7,0,retry,${text}`).attempt).toBe(3)
})

it('reads the others of a claim when one cannot be read', () => {
  const [first, second, third] = decodeJobs('9', ['low:%:5:%zz', 'nonsense', 'low:default:6:a', text, 'low:x'], [])

  expect(first).toMatchObject({ key: 'low:%:5:%zz', tenant: '%zz', damage: expect.any(TypeError) })
  expect(second).toMatchObject({ type: 'SEND', damage: undefined })
  expect(third).toMatchObject({ damage: expect.any(TypeError) })
})

it('gives the same payload each time it is asked', () => {
  const job = new LeasedJob('normal:default:5:a', '9', text)

  expect(job.payload).toBe(job.payload)
})
