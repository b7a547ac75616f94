import { expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { closeQueue } from './close-queue.ts'

const store = useScriptStore()

const close = () => closeQueue(store.redis, store.keys(), store.nowUs)

it('makes an empty queue unknown to whoever still uses it, and keeps what it counted', async () => {
  await store.submit('a', 1)
  await store.finish(await store.claim(1), { outcome: 'succeeded' })

  const { reply, changes } = await store.changesOf(close)

  expect(reply).toBe(true)
  expect(changes).toEqual({ queue: { settings: null } })
  await expect(store.submit('a', 1)).rejects.toThrow('unregistered')
  await expect(store.claim(1)).rejects.toThrow('unregistered')
})

it.each([
  ['waits', () => store.submit('a', 1)],
  ['is delayed', () => store.submit('a', 1, { kind: 'later', entries: ['+5000000', '', 'x\n\nT\n\n\n1'] })],
  ['runs', () => store.submit('a', 1).then(() => store.claim(1))],
])('leaves a queue alone of which a job %s', async (_, arrange) => {
  await arrange()

  const { reply, changes } = await store.changesOf(close)

  expect(reply).toBe(false)
  expect(changes).toEqual({})
})

it('takes the queue from the list of its group', async () => {
  await store.empty()
  store.group = 'gitlab'
  await store.register()
  await store.client.zadd(store.keys().groupQueues, 0, 'q', 0, 'other')

  const { reply, changes } = await store.changesOf(close)

  expect(reply).toBe(true)
  expect(changes['@queues']).toEqual({ q: null })
})

it('finds nothing to close where no queue is, and when it is repeated', async () => {
  await close()

  const again = await store.changesOf(close)
  await store.empty()
  const never = await store.changesOf(close)

  expect([again.reply, never.reply]).toEqual([true, true])
  expect([again.changes, never.changes]).toEqual([{}, {}])
})
