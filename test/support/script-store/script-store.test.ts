import { beforeEach, expect, it } from 'vitest'
import { useScriptStore } from './use-script-store.ts'

const store = useScriptStore()
beforeEach(() => store.empty())

async function run(body: string): Promise<void> {
  const sha = (await store.client.script('LOAD', `#!lua\n${body}`)) as string
  await store.client.evalsha(sha, 1, 'test:{q}:declared')
}

it('names the keys that a script chose itself and met after its first write', async () => {
  await run("redis.call('SET', KEYS[1], 1) redis.call('GET', 'test:{q}:late') redis.call('SET', 'test:{q}:later', 1)")

  const late = await store.keysMetTooLate()

  expect(late.map((each) => each.split(': ')[1])).toEqual(['get test:{q}:late', 'set test:{q}:later'])
  expect(await store.keysMetTooLate()).toEqual([])
})

it('lets a script write what it has read before, what was declared, and its first key', async () => {
  await run("redis.call('GET', 'test:{q}:read') redis.call('SET', 'test:{q}:first', 1) redis.call('DEL', KEYS[1])")
  await run("redis.call('GET', 'test:{q}:read') redis.call('DEL', KEYS[1]) redis.call('SET', 'test:{q}:read', 1)")

  expect(await store.keysMetTooLate()).toEqual([])
})

it('says what changed in the keyspace: fields, whole lists, keys that went and keys that expire', async () => {
  await store.client.hset('test:{q}:q:hash', { kept: '1', changed: '1', gone: '1' })
  await store.client.rpush('test:{q}:q:list', 'a')
  await store.client.set('test:{q}:q:string', 'a')

  const { changes } = await store.changesOf(async () => {
    await store.client.hset('test:{q}:q:hash', { changed: '2', added: '1' })
    await store.client.hdel('test:{q}:q:hash', 'gone')
    await store.client.rpush('test:{q}:q:list', 'b\nc')
    await store.client.del('test:{q}:q:string')
    await store.client.zadd('test:{q}:q:zset', 5, 'member')
    await store.client.expire('test:{q}:q:zset', 100)
  })

  expect(changes).toEqual({
    hash: { changed: '2', added: '1', gone: null },
    list: ['a', 'b|c'],
    string: null,
    zset: { member: 5, '(expires)': true },
  })
})
