import { expect, it, onTestFinished } from 'vitest'
import { startRedis } from '../../src/testing/redis-server.ts'
import { startCluster } from '../support/cluster.ts'
import { startSentinels } from '../support/sentinels.ts'
import { runProgram } from './program.ts'
import { snippetsOf } from './snippets.ts'

const programs = snippetsOf('docs/guides/redis.md').map(({ text }) => text)

/** The program with servers of this machine, which want no password. */
function against(servers: readonly string[], text: string): string {
  const list = JSON.stringify(servers)
  return text
    .replace(/redis:\/\/:secret@[^']+/, `redis://${servers[0]}`)
    .replace(/sentinels: \[[^\]]+\]/, `sentinels: ${list}`)
    .replace(/cluster: \[[^\]]+\]/, `cluster: ${list}`)
    .replace(/,\s+password: 'secret'/, '')
    .replace('await sluice.ready()', "await sluice.ready()\nconsole.log(await sluice.queue('mail').counts())")
}

it('docs/guides/redis.md connects to one server', async () => {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())

  const printed = await runProgram(against([`127.0.0.1:${redis.port}`], programs[0] ?? ''))

  expect(printed).toContain('waiting: 0')
})

it('docs/guides/redis.md connects to a master with sentinels', async () => {
  const sentinels = await startSentinels()
  onTestFinished(() => sentinels.stop())

  const printed = await runProgram(against(sentinels.redis.sentinels.map(String), programs[1] ?? ''))

  expect(printed).toContain('waiting: 0')
})

it('docs/guides/redis.md connects to a Cluster', async () => {
  const cluster = await startCluster({ replicas: 0 })
  onTestFinished(() => cluster.stop())

  const printed = await runProgram(against(cluster.redis.cluster.map(String), programs[2] ?? ''))

  expect(printed).toContain('waiting: 0')
  expect(programs).toHaveLength(3)
})
