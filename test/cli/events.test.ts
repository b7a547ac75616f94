import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { StoreSource } from '../../src/cli/store-source.ts'
import { startRedis } from '../../src/testing/redis-server.ts'
import { CliProcess, sluice } from './cli-process.ts'
import { folderWith, removeFolder, ServerProcess } from './server-process.ts'

let folder: string
let server: ServerProcess

beforeAll(async () => {
  folder = folderWith()
  server = await ServerProcess.start(folder, ['--queue', 'web,mail'])
})
afterAll(async () => {
  await server.stop()
  await removeFolder(folder)
})

/** A job that may call no host dies at once. */
async function die(tenant: string, queue = 'web'): Promise<void> {
  const job = JSON.stringify({ payload: { url: 'http://not-allowed.example' } })
  const { code } = await server.sluice(['submit', '-', '-t', tenant, '-q', queue, '--wait'], { input: job })
  expect(code).toBe(5)
}

describe('sluice events', () => {
  it('shows what has happened, and ends: all of it, of one tenant, of some types, or since an event', async () => {
    await die('acme')
    await die('globex')

    const all = await server.data<{ id: string; type: string }>(['events', '-q', 'web'])
    const dead = all.filter(({ type }) => type === 'job.dead')
    const [ofTenant, since, text, none] = await Promise.all([
      server.data(['events', '-q', 'web', '-t', 'acme', '--type', 'job,action.completed']),
      server.data(['events', '-q', 'web', '--since', dead[0]?.id ?? '', '--type', 'job.dead']),
      server.sluice(['events', '--since', '1h', '--type', 'job.dead']),
      server.sluice(['events', '-q', 'web', '--since', '2999-01-01']),
    ])

    expect(dead).toMatchObject([
      { queue: 'web', tenant: 'acme', reason: 'discarded' },
      { queue: 'web', tenant: 'globex' },
    ])
    expect(ofTenant).toMatchObject([
      { type: 'job.dead', tenant: 'acme' },
      { type: 'action.completed', tenant: 'acme' },
    ])
    expect(since).toEqual([dead[1]])
    expect(text.stdout).toMatch(/^\d{4}-\S+Z {2}web {2}job\.dead {2}tenant=acme .*reason=discarded.*\n.*tenant=globex/)
    expect(none).toMatchObject({ code: 0, stdout: '' })
  })

  it('follows a queue from now on, and ends with 0 at Ctrl-C', async () => {
    const follower = new CliProcess(['events', '-q', 'web', '--follow', '--json', '--url', server.url])
    await follower.said(/Ctrl-C ends it/)
    // The line is said before the stream is open: what comes first may be missed, so it happens until it is seen.
    const seen = follower.wrote(/job\.dead/)
    let isSeen = false
    void seen.then(() => (isSeen = true))
    while (!isSeen) await die('initech')

    follower.signal('SIGINT')
    const { code, stdout } = await follower.ended()

    expect(code).toBe(0)
    expect(stdout).not.toMatch(/acme|globex/)
    expect(JSON.parse(stdout.split('\n')[0] ?? '')).toMatchObject({ queue: 'web', tenant: 'initech' })
  })

  it('follows a store without a server', async () => {
    const data = join(folder, '.sluice')
    const follower = new CliProcess(['events', '-q', 'mail', '-f', '--since', '1h', '--json', '--data', data], {
      cwd: folder,
    })
    await die('umbrella', 'mail')

    await follower.wrote(/job\.dead/)
    follower.signal('SIGTERM')

    expect(await follower.ended()).toMatchObject({ code: 0 })
  })

  it('says in one line what cannot be', async () => {
    const [type, since, queue, oneOfTwo] = await Promise.all([
      server.sluice(['events', '--type', 'job.died']),
      server.sluice(['events', '--since', 'lately']),
      server.sluice(['events', '-q', 'nowhere', '--follow']),
      server.sluice(['events', '-q', 'web,nowhere', '--follow']),
    ])

    expect([type.code, since.code, queue.code, oneOfTwo.code]).toEqual([2, 2, 3, 3])
    expect(oneOfTwo.stderr).toMatch(/^Following web, nowhere\..*\nsluice: .*nowhere.*\n$/)
    expect(type.stderr).toMatch(/^sluice: .*There is no type "job\.died"; there are action\.created, .*\n$/)
    expect(since.stderr).toMatch(/^sluice: .*It must be a time such as 10m, .*\n$/)
  })
})

describe('sluice events of a store', () => {
  it('ends with 3 for a queue that is not there: no connection is lost, and no password shown', async () => {
    const redis = await startRedis({ config: { requirepass: 'secret' } })
    onTestFinished(() => redis.stop())
    const url = redis.url.replace('//', '//:secret@')

    const end = await sluice(['events', '-q', 'nowhere', '--follow', '--redis', url])
    const source = await StoreSource.open({ redis: url }, [])
    await source.close()

    expect(end.code).toBe(3)
    expect(source.name).toBe(redis.url.replace('//', '//…@'))
    expect(end.stderr).toMatch(/^Following nowhere\..*\nsluice: The store has no queue "nowhere".*\n$/)
  })
})

describe('sluice events --follow', () => {
  it('goes on after a restart of its server, and leaves nothing out', async () => {
    const place = folderWith({ 'sluice.config.mjs': 'export default { queues: { web: {} } }' })
    const first = await ServerProcess.start(place)
    const { port } = new URL(first.url)
    const follower = new CliProcess([
      'events',
      '-q',
      'web',
      '-f',
      '--since',
      '1h',
      '--type',
      'job.dead',
      '--json',
      '--url',
      first.url,
    ])
    const kill = (on: ServerProcess, tenant: string) =>
      on.sluice(['submit', '-', '-t', tenant, '-q', 'web', '--wait'], {
        input: '{"payload":{"url":"http://no.example"}}',
      })
    await kill(first, 'before')
    await follower.wrote(/before/)

    await first.stop()
    await follower.said(/is lost; trying again/)
    const second = await ServerProcess.start(place, ['--port', port])
    await kill(second, 'after')
    await follower.wrote(/after/)
    follower.signal('SIGTERM')
    const { stdout } = await follower.ended()
    await second.stop()
    await removeFolder(place)

    const tenants = stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { tenant: string }).tenant)
    expect(tenants).toEqual(['before', 'after'])
  })
})
