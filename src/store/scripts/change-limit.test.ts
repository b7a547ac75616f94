import { expect, it } from 'vitest'
import { shortly } from '../../../test/support/script-store/script-jobs.ts'
import { beginGroup } from '../../../test/support/script-store/shared-limits.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { type LimitDefinition, parseLimit } from '../../limits/definition.ts'
import { changeLimit } from './change-limit.ts'

const store = useScriptStore()

function change(definition: LimitDefinition, isDeclared = false, name = 'gitlab'): Promise<void> {
  const rule = parseLimit(name, definition)
  return changeLimit(store.groupRequests(), { name, rule, isDeclared, nowUs: store.nowUs })
}

const one = { kind: 'window', limit: 1, windowMs: 60_000 } as const

it('holds for every queue at once, and wakes a process of each that is idle', async () => {
  await beginGroup(store, one, { a: 2, b: 2 })
  for (const queue of ['a', 'b']) {
    store.use(queue)
    await store.claim(2, { idleForMs: 5_000 }, `worker-${queue}`)
  }

  const { changes } = await store.changesOf(() => change({ ...one, limit: 3 }))

  expect(Object.keys(changes).sort()).toEqual(['@limits', 'a:idle', 'a:wake:worker-a', 'idle', 'wake:worker-b'])
  expect(changes['@limits']).toMatchObject({ 'gitlab/changed': '1' })
  expect(shortly(await store.claim(9))).toBe('b1 b2')
})

it('starts the count anew where the kind is another', async () => {
  await beginGroup(store, one, { a: 2 })
  await store.claim(1)

  await change({ kind: 'bucket', limit: 10, windowMs: 1_000, jitterMs: 0 })

  expect(shortly(await store.claim(1))).toBe('a2')
})

it('lets later code declare otherwise once it is reset', async () => {
  await beginGroup(store, one, {})
  store.use('a')
  await beginGroup(store, one, { a: 2 })
  await change({ ...one, limit: 2 })
  await change(one, true)

  expect((await store.dump())['@limits']).not.toHaveProperty(['hash', 'gitlab/changed'])
})

it('tells a limit that is not known', async () => {
  await beginGroup(store, one, { a: 0 })

  await expect(change(one, false, 'other')).rejects.toThrow('unregistered')
})
