import { describe, expect, it } from 'vitest'
import { parseInfo } from '../../store/server-info.ts'
import { checkServerInfo, type StoreFacts } from './server-checks.ts'

const healthy = {
  redis_version: '7.0.15',
  maxmemory_policy: 'noeviction',
  aof_enabled: '1',
  aof_last_write_status: 'ok',
  used_memory: '1048576',
  maxmemory: '104857600',
  role: 'master',
  connected_slaves: '0',
  connected_clients: '5',
  maxclients: '10000',
}

function verdicts(changes: Readonly<Record<string, string>>, facts: Partial<StoreFacts> = {}) {
  const reply = Object.entries({ ...healthy, ...changes }).map(([name, value]) => `${name}:${value}\r\n`)
  const all = { isEmbedded: false, allowsEviction: false, replicasWanted: 0, ...facts }
  const found = checkServerInfo(parseInfo(`# Server\r\n${reply.join('')}`), all)
  return Object.fromEntries(
    found.filter(({ verdict }) => verdict !== 'ok').map(({ check, verdict }) => [check, verdict]),
  )
}

describe('what a Redis server says of itself', () => {
  it('is all right when it loses nothing', () => {
    expect(verdicts({})).toEqual({})
    expect(verdicts({ redis_version: '6.2', valkey_version: '8.0.1' })).toEqual({})
    expect(verdicts({ connected_slaves: '1' }, { replicasWanted: 1 })).toEqual({})
    expect(verdicts({ maxmemory: '0' }, { isEmbedded: true })).toEqual({})
  })

  it.each([
    [{ maxmemory_policy: 'allkeys-lru' }, {}, { eviction: 'failure' }],
    [{ maxmemory_policy: 'allkeys-lru' }, { allowsEviction: true }, { eviction: 'warning' }],
    [{ aof_enabled: '0' }, {}, { persistence: 'warning' }],
    [{ aof_enabled: '0', rdb_last_bgsave_status: 'err' }, {}, { persistence: 'failure' }],
    [{ aof_last_write_status: 'err' }, {}, { persistence: 'failure' }],
    [{ used_memory: '94371840' }, {}, { memory: 'warning' }],
    [{ maxmemory: '0' }, {}, { memory: 'warning' }],
    [{ connected_slaves: '1' }, {}, { replicas: 'warning' }],
    [{ connected_slaves: '1' }, { replicasWanted: 2 }, { replicas: 'failure' }],
    [{ connected_clients: '9000' }, {}, { connections: 'warning' }],
  ])('%j with %j is %j', (changes, facts, expected) => {
    expect(verdicts(changes, facts)).toEqual(expected)
  })
})
