import { beforeEach, expect, it } from 'vitest'
import { libraryNameOf } from '../../../src/store/library.ts'
import { runScript, type Script } from '../../../src/store/script.ts'
import { guardedLibrary } from '../guarded-library.ts'
import { useScriptStore } from './use-script-store.ts'

const store = useScriptStore()
beforeEach(() => store.empty())

async function run(body: string): Promise<void> {
  const library = `#!lua name=test\nredis.register_function('test', function(KEYS) ${body} end)`
  await store.client.function('LOAD', 'REPLACE', library)
  await store.client.fcall('test', 1, 'test:{q}:declared')
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

it('fails a call that leaves something behind in what all calls share', async () => {
  const library = guardedLibrary(`register("leaves", {})
make = function()
local modules, scripts = {}, {}
do
local shelf = {}
local NOTHING = {}
function shelf.nothing()
return NOTHING
end
modules.shelf = shelf
end
scripts.leaves = function(KEYS, ARGV)
local found = #modules.shelf.nothing()
modules.shelf.nothing()[#ARGV] = "left"
return found
end
return scripts
end`)
  const name = libraryNameOf(library)
  const leaves: Script<{ key: string }, { what: readonly string[] }> = {
    name: 'leaves',
    library: { name, source: library, origins: [] },
    calledAs: `${name}_leaves`,
    flags: [],
    keys: ['key'],
    args: [{ name: 'what', kind: 'list' }],
  }

  const call = runScript(store.redis, leaves, { key: '{q}' }, { what: ['a'] })

  await expect(call).rejects.toThrow('a call has changed what all calls share: .shelf.NOTHING.1')
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
