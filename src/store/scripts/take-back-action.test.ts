import { expect, it } from 'vitest'
import { record } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { takeBackAction } from './take-back-action.ts'

const store = useScriptStore()

function takeBack(name = 'mail') {
  return takeBackAction(store.requests('producer'), { tenant: 'a', name }, store.nowUs)
}

it('leaves nothing of an action that has received nothing, and says so to those who saw it made', async () => {
  await store.openAction('mail', { sealTimeoutMs: 5_000 }, { webhook: '{"url":"u"}', begunBy: 'me' })

  const { reply, changes } = await store.changesOf(() => takeBack())

  expect(reply).toBe(true)
  expect(changes).toEqual({
    'action:a:mail': null,
    actions: null,
    'actions:a': null,
    'client:producer': { '2': '2' },
    duties: null,
    events: ['type action.canceled tenant a action mail'],
  })
  expect(await store.openAction('mail')).toMatchObject({ isNew: true })
})

it('leaves the other actions of the tenant', async () => {
  await store.openAction('mail')
  await store.openAction('other')

  const { changes } = await store.changesOf(() => takeBack())

  expect(changes).toMatchObject({ actions: { 'a:mail': null }, 'actions:a': { mail: null } })
  expect(await store.openAction('other')).toMatchObject({ isNew: false })
})

it.each([
  ['has received something', () => store.submit('a', 1, { lane: '@mail' })],
  [
    'has received a job that was known',
    () => store.submit('a', 0, { lane: '@mail', kind: 'named', entries: ['aa', record(1)] }),
  ],
  ['is sealed', () => store.sealAction('mail')],
  ['was cancelled', () => store.cancelAction('mail')],
])('keeps one that %s', async (_, happen) => {
  await store.openAction('mail')
  await happen()

  const { reply, changes } = await store.changesOf(() => takeBack())

  expect(reply).toBe(false)
  expect(changes).toEqual({})
})

it('knows that there is none', async () => {
  expect(await takeBack()).toBe(false)
})

it('answers a repeated request from memory, and leaves what was made meanwhile', async () => {
  await store.openAction('mail')
  await takeBack()
  await store.openAction('mail')
  store.repeatFrom1('producer')
  await store.openAction('mail')

  const { reply, changes } = await store.changesOf(() => takeBack())

  expect(reply).toBe(true)
  expect(changes).toEqual({})
})

it('runs while Redis is out of memory', async () => {
  await store.openAction('mail')

  expect(await store.outOfMemory(() => takeBack())).toBe(true)
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(takeBack()).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})
