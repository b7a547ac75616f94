import { beforeEach, expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { type DutyOutcome, settleDuty } from './settle-duty.ts'
import type { Duty } from './take-duty.ts'
import { watchAction } from './watch-action.ts'

const store = useScriptStore()
beforeEach(async () => {
  await store.client.hset('test:{q}:q:queue', 'aggregated:SEND', '1')
})

/** An action of which all but its aggregate is done, and the duty to make that. */
async function aggregating(options: { webhook?: string } = {}): Promise<Duty> {
  await store.openAction('mail', {}, options)
  await store.sealAction('mail')
  return taken()
}

async function taken(): Promise<Duty> {
  const duty = await store.takeDuty()
  if (!duty) throw new Error('a duty was to be due')
  return duty
}

function settle(duty: Duty, outcome: DutyOutcome, client = 'me') {
  return settleDuty(store.requests(client), duty, outcome, store.nowUs)
}

it('stores the aggregate of an action and completes it', async () => {
  const duty = await aggregating({ webhook: '{}' })
  store.now += 1_000_000

  const { reply, changes } = await store.changesOf(() => settle(duty, { outcome: 'done', aggregate: '{"sum":1}' }))

  expect(reply).toBe('1001000000')
  expect(changes).toEqual({
    'action:a:mail': {
      '(expires)': true,
      aggregate: '{"sum":1}',
      'state.ended': 1_001_000_000,
      'state.name': 'COMPLETED',
    },
    'client:me': {
      '(expires)': true,
      '2': '2',
    },
    duties: {
      'aggregate:a:mail': null,
      'webhook:a:mail': 1_001_000_000,
    },
    events: ['type action.completed tenant a action mail'],
  })
})

it('fails an action whose aggregate cannot be made', async () => {
  const duty = await aggregating()

  const { changes } = await store.changesOf(() => settle(duty, { outcome: 'done', error: 'no' }))

  expect(changes).toMatchObject({
    'action:a:mail': { error: 'no', 'state.name': 'FAILED' },
    events: ['type action.failed tenant a action mail'],
  })
})

it('stores an aggregate once: whoever comes back after the lease has lost the duty', async () => {
  const late = await aggregating()
  store.now += 30_000_000
  const duty = await taken()

  const first = await store.changesOf(() => settle(late, { outcome: 'done', aggregate: '1' }, 'late'))
  await settle(duty, { outcome: 'done', aggregate: '2' })
  const second = await store.changesOf(() => settle(late, { outcome: 'done', aggregate: '1' }, 'late'))

  expect([first.reply, second.reply]).toEqual([undefined, undefined])
  expect([first.changes, second.changes]).toEqual([{}, {}])
})

it('takes the aggregate away from an action that was cancelled meanwhile', async () => {
  const duty = await aggregating()

  const canceled = await store.changesOf(() => store.cancelAction('mail'))
  const settled = await store.changesOf(() => settle(duty, { outcome: 'done', aggregate: '1' }))

  expect(canceled.changes).toMatchObject({ duties: null, 'action:a:mail': { 'state.name': 'CANCELED' } })
  expect(settled.reply).toBeUndefined()
  expect(settled.changes).toEqual({})
})

it('lets a duty last longer', async () => {
  const duty = await aggregating()
  store.now += 20_000_000

  const { reply, changes } = await store.changesOf(() => settle(duty, { outcome: 'renewed', afterMs: 30_000 }))

  expect(reply).toBe('1050000000')
  expect(changes).toEqual({
    'client:me': { '(expires)': true, '2': '2' },
    duties: { 'aggregate:a:mail': 1_050_000_000 },
  })
})

it('has a duty done again after a while, and counts how often', async () => {
  const duty = await aggregating()

  const { changes } = await store.changesOf(() => settle(duty, { outcome: 'again', afterMs: 500 }))
  store.now += 500_000
  const again = await taken()
  await settle(again, { outcome: 'done', aggregate: '1' })

  expect(changes).toEqual({
    'client:me': { '(expires)': true, '2': '2' },
    duties: { 'aggregate:a:mail': 1_000_500_000 },
    'duties:tries': { 'aggregate:a:mail': '1' },
  })
  expect(await store.dump()).not.toHaveProperty('duties:tries')
})

it('tells those who follow the action', async () => {
  const duty = await aggregating()
  await watchAction(store.requests('viewer'), { tenant: 'a', name: 'mail', forMs: 60_000 }, store.nowUs)

  const { changes } = await store.changesOf(() => settle(duty, { outcome: 'done', aggregate: '1' }))

  expect(changes).toMatchObject({ 'wake:viewer': ['action:a:mail'] })
})

it('ends a duty of an action that is forgotten', async () => {
  const duty = await aggregating()
  await store.client.del('test:{q}:q:action:a:mail')

  const { changes } = await store.changesOf(() => settle(duty, { outcome: 'done', aggregate: '1' }))

  expect(changes).toEqual({ 'client:me': { '(expires)': true, '2': '2' }, duties: null })
})

it('answers a repeated request from memory and changes nothing', async () => {
  const duty = await aggregating()
  const requests = store.requests('again')
  const first = await settleDuty(requests, duty, { outcome: 'done', aggregate: '1' }, store.nowUs)
  store.repeatFrom1('again')

  const { reply, changes } = await store.changesOf(() => settle(duty, { outcome: 'done', aggregate: '1' }, 'again'))

  expect(reply).toBe(first)
  expect(changes).toEqual({})
})

it('changes nothing in a store that does not know the queue', async () => {
  const duty = await aggregating()
  await store.empty()

  await expect(settle(duty, { outcome: 'done' })).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})

it('runs while Redis is out of memory', async () => {
  const duty = await aggregating()

  expect(await store.outOfMemory(() => settle(duty, { outcome: 'done', aggregate: '1' }))).toBe('1000000000')
})
