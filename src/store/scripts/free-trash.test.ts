import { expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { freeTrash } from './free-trash.ts'
import { addressOf, readJob } from './read-job.ts'

const store = useScriptStore()

/** Three jobs that had come back to the front of their lane when their action was cancelled; the name of their list. */
async function trash(): Promise<string> {
  await store.openAction('mail')
  await store.submit('a', 3, { lane: '@mail' })
  await store.finish(await store.claim(3), { outcome: 'released' })
  await store.cancelAction('mail')
  const duty = await store.takeDuty()
  return duty?.tenant ?? ''
}

function free(name: string, most: number) {
  return freeTrash(store.requests(), name, most, store.nowUs)
}

it('frees the records of a dropped list in steps, and keeps a mark of each job as long as ids are kept', async () => {
  const name = await trash()

  const first = await store.changesOf(() => free(name, 2))
  const second = await store.changesOf(() => free(name, 2))

  expect([first.reply, second.reply]).toEqual([1, 0])
  expect(first.changes).toEqual({
    aside: {
      'normal:@mail:1000000000:a': null,
      'normal:@mail:1000000001:a': null,
    },
    canceled: {
      'normal:@mail:1000000000:a': 173_800_000_000,
      'normal:@mail:1000000001:a': 173_800_000_000,
    },
    'trash:1000000003': ['normal:@mail:1000000002:a'],
  })
  expect(second.changes).toEqual({
    aside: null,
    canceled: {
      'normal:@mail:1000000002:a': 173_800_000_000,
    },
    'trash:1000000003': null,
  })
})

it('leaves the jobs known as canceled', async () => {
  const name = await trash()
  const state = async () => {
    const found = await readJob(store.requests(), addressOf('normal:@mail:1000000000:a', 'a'), store.nowUs)
    return found?.state
  }

  const before = await state()
  await free(name, 10)

  expect([before, await state()]).toEqual(['canceled', 'canceled'])
})

it('changes nothing when there is nothing left to free', async () => {
  const { reply, changes } = await store.changesOf(() => free('1', 10))

  expect(reply).toBe(0)
  expect(changes).toEqual({})
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(free('1', 10)).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})

it('runs while Redis is out of memory', async () => {
  const name = await trash()

  expect(await store.outOfMemory(() => free(name, 10))).toBe(0)
})
