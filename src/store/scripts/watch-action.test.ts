import { expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { watchAction } from './watch-action.ts'

const store = useScriptStore()

function watch(client: string, forMs = 60_000) {
  return watchAction(store.requests(client), { tenant: 'a', name: 'mail', forMs }, store.nowUs)
}

it('remembers who follows an action and until when', async () => {
  await store.openAction('mail')

  const { reply, changes } = await store.changesOf(() => watch('viewer'))

  expect(reply).toBe(true)
  expect(changes).toEqual({ 'action:a:mail': { watchers: '{"viewer":1060000000}' } })
})

it('tells each that follows when the action changes, at most ten times a second', async () => {
  await store.openAction('mail')
  await watch('viewer')
  await watch('other')
  store.now += 1

  const first = await store.changesOf(() => store.submit('a', 1, { lane: '@mail' }))
  store.now += 99_999
  const soon = await store.changesOf(() => store.submit('a', 1, { lane: '@mail' }))
  store.now += 1
  const later = await store.changesOf(() => store.submit('a', 1, { lane: '@mail' }))

  expect(first.changes).toMatchObject({ 'wake:viewer': ['action:a:mail'], 'wake:other': ['action:a:mail'] })
  expect(soon.changes).not.toHaveProperty('wake:viewer')
  expect(later.changes).toMatchObject({ 'wake:viewer': ['action:a:mail', 'action:a:mail'] })
})

it('tells the end at once, and once', async () => {
  await store.openAction('mail')
  await store.submit('a', 2, { lane: '@mail' })
  const claim = await store.claim(2)
  await watch('viewer')
  await store.submit('a', 1, { lane: '@mail' })

  const ended = await store.changesOf(() => store.cancelAction('mail'))
  const after = await store.changesOf(() => store.finish(claim, { outcome: 'succeeded' }))

  expect(ended.changes).toMatchObject({ 'wake:viewer': ['action:a:mail', 'action:a:mail'] })
  expect(after.changes).not.toHaveProperty('wake:viewer')
})

it('forgets who follows no longer, and whose time is over', async () => {
  await store.openAction('mail')
  await watch('gone', 1_000)
  await watch('viewer')
  store.now += 1_000_000

  const over = await store.changesOf(() => store.submit('a', 1, { lane: '@mail' }))
  const again = await store.changesOf(() => watch('viewer'))
  const none = await store.changesOf(() => watch('viewer', 0))

  expect(over.changes).toMatchObject({ 'wake:viewer': ['action:a:mail'] })
  expect(over.changes).not.toHaveProperty('wake:gone')
  expect(again.changes).toEqual({ 'action:a:mail': { watchers: '{"viewer":1061000000}' } })
  expect(none.changes).toEqual({ 'action:a:mail': { watchers: null } })
})

it('changes nothing for an action that is not known', async () => {
  const { reply, changes } = await store.changesOf(() => watch('viewer'))

  expect(reply).toBe(false)
  expect(changes).toEqual({})
})

it('runs while Redis is out of memory', async () => {
  await store.openAction('mail')

  expect(await store.outOfMemory(() => watch('viewer'))).toBe(true)
})
