import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { root } from '../docs/markdown.ts'
import { CliProcess, sluice } from './cli-process.ts'
import { folderWith, removeFolder, ServerProcess } from './server-process.ts'

function folder(files: Readonly<Record<string, string>> = {}): string {
  const made = folderWith(files)
  onTestFinished(() => removeFolder(made))
  return made
}

async function makeKey(...args: string[]): Promise<{ key: string; entry: object }> {
  const { stdout } = await sluice(['keys', 'create', ...args, '--json'])
  return JSON.parse(stdout) as { key: string; entry: object }
}

describe('sluice serve', () => {
  it('says where it listens, answers, and ends with 0 when it is asked to', async () => {
    const server = await ServerProcess.start(folder(), ['--json', '--queue', 'web,mail=5/s', '--no-workers'])

    const health = await fetch(`${server.url}/healthz`)
    const { code, stdout } = await server.stop()

    expect(health.status).toBe(200)
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({ url: server.url, queues: ['web', 'mail'], workers: false })
  })

  it('refuses to listen to other machines without keys, with 2', async () => {
    const { code, stderr } = await sluice(['serve', '--host', '0.0.0.0', '--port', '0'], { cwd: folder() })

    expect(code).toBe(2)
    expect(stderr).toMatch(/^sluice: .*no API keys: everybody would be admin.*sluice keys create.*\n$/)
  })

  it('lets in who has a key of its config file, as far as the key goes', async () => {
    const viewer = await makeKey('--role', 'viewer')
    const config = `export default { keys: [${JSON.stringify(viewer.entry)}], queues: { web: { limits: { queue: '7/s' } } } }`
    const server = await ServerProcess.start(folder({ 'sluice.config.mjs': config }))
    const limits = ['limits', 'ls', '-q', 'web', '--json']

    const without = await server.sluice(limits)
    const wrong = await server.sluice(limits, { env: { SLUICE_KEY: (await makeKey('--role', 'viewer')).key } })
    const looking = await server.sluice([...limits, '--key', viewer.key])
    const changing = await server.sluice(['tenants', 'pause', 'acme', '-q', 'web'], { env: { SLUICE_KEY: viewer.key } })
    await server.stop()

    expect([without.code, wrong.code, looking.code, changing.code]).toEqual([9, 9, 0, 9])
    expect(JSON.parse(looking.stdout)).toMatchObject({ name: 'queue', limit: 7 })
    expect(changing.stderr).toMatch(/give a key that may with --key or SLUICE_KEY/)
  })

  it.each([
    { where: 'a project of modules', manifest: { 'package.json': '{"type":"module"}' } },
    { where: 'a folder without package.json', manifest: {} },
  ])('runs the processors of a config file in TypeScript, in $where', async ({ manifest }) => {
    const config = `import { greeting } from './greeting.ts'
    const words: string = await Promise.resolve(greeting)
    export default {
      queues: { web: { processors: { greet: (job: { payload: { name: string } }) => { console.error(words + job.payload.name) } } } },
    } as const`
    const place = folder({ 'sluice.config.ts': config, 'greeting.ts': "export const greeting = 'hello '", ...manifest })
    // Node 20 needs it; a project of TypeScript has it.
    symlinkSync(join(root, 'node_modules'), join(place, 'node_modules'))
    const server = await ServerProcess.start(place)

    await fetch(`${server.url}/v1/queues/web/jobs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ type: 'greet', payload: { name: 'you' } }),
    })
    await server.cli.said(/hello you/)

    expect((await server.stop()).code).toBe(0)
  })

  it('makes the schedules and shared limits of its config file, and changes them to what it says', async () => {
    const config = (every: string) => `export default {
      limits: { github: '50/s', tokens: { limit: { kind: 'concurrency', max: 3 }, group: 'github' } },
      queues: {
        web: { shares: ['github', 'tokens'], schedules: { sync: { every: '${every}', job: { type: 'http.request' } } } },
        mail: { shares: ['github'], limits: { queue: '5/s' } },
      },
    }`
    const place = folder({ 'sluice.config.mjs': config('15m') })
    const first = await ServerProcess.start(place, ['--no-workers'])
    const [made] = await first.data(['schedules', 'get', 'sync', '-q', 'web'])
    const limits = await first.data<{ name: string }>(['limits', 'ls', '-q', 'mail'])
    const [seen] = await first.data(['top', '--config', 'sluice.config.mjs', '-q', 'web'])
    await first.stop()
    writeFileSync(join(place, 'sluice.config.mjs'), config('1h'))
    const second = await ServerProcess.start(place, ['--no-workers'])
    const [changed] = await second.data(['schedules', 'get', 'sync', '-q', 'web'])
    await second.stop()

    expect(made).toMatchObject({ everyMs: 900_000, job: { type: 'http.request' } })
    expect(limits.map(({ name }) => name).toSorted()).toEqual(['github', 'queue'])
    // Found where the group of its limits says.
    expect(seen).toMatchObject({ name: 'web', counts: { waiting: 0 } })
    expect(changed).toMatchObject({ everyMs: 3_600_000 })
  })

  it.each([
    {
      what: 'a shared limit that is not there',
      text: "export default { queues: { web: { shares: ['github'] } } }",
      says: /queues\.web\.shares: there is no limit "github" in "limits" of the config file/,
    },
    {
      what: 'a schedule that cannot be',
      text: "export default { queues: { web: { schedules: { sync: { every: 'often', job: { type: 'a' } } } } } }",
      says: /every/,
    },
    {
      what: 'a name that is no option',
      text: 'export default { prot: 1 }',
      says: /prot is not an option; did you mean "port"/,
    },
    { what: 'no default export', text: 'export const port = 1', says: /has no default export/ },
    { what: 'a mistake', text: 'export default {', says: /could not be loaded/ },
  ])('refuses a config file with $what, with 2 and one line', async ({ text, says }) => {
    const { code, stderr } = await sluice(['serve', '--port', '0'], { cwd: folder({ 'sluice.config.mjs': text }) })

    expect(code).toBe(2)
    expect(stderr).toMatch(says)
    expect(stderr.trim().split('\n')).toHaveLength(1)
  })

  it.each([
    { what: 'is no address of this machine', host: '192.0.2.1', says: /192\.0\.2\.1 is no address of this machine/ },
    { what: 'nobody knows', host: 'nowhere.invalid', says: /the host nowhere\.invalid is not known here/ },
  ])('ends with 2 for a host that $what, and says what to do', async ({ host, says }) => {
    const { entry } = await makeKey('--role', 'viewer')
    const config = `export default { keys: [${JSON.stringify(entry)}] }`
    const place = folder({ 'sluice.config.mjs': config })

    const { code, stderr } = await sluice(['serve', '--host', host, '--port', '0'], { cwd: place })

    expect(code).toBe(2)
    expect(stderr).toMatch(says)
  })

  it('ends with 8 when Redis is not there, and says what to do', async () => {
    const { code, stderr } = await sluice(['serve', '--port', '0', '--redis', 'redis://127.0.0.1:1'], { cwd: folder() })

    expect(code).toBe(8)
    expect(stderr).toMatch(/^sluice: Redis is not available: .* start it, or name another with --redis .*\n$/)
  })
})

describe('sluice worker', () => {
  it('runs what a server without workers takes, and lets a running job end', async () => {
    const config = `export default { queues: { web: { processors: { slow: async () => {
      console.error('begun')
      await new Promise((resolve) => setTimeout(resolve, 1_000))
      console.error('ended')
    } } }, other: {} } }`
    const place = folder({ 'sluice.config.mjs': config })
    const server = await ServerProcess.start(place, ['--no-workers'])
    const worker = new CliProcess(['worker', '--only', 'web', '--json'], { cwd: place })

    await fetch(`${server.url}/v1/queues/web/jobs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"type":"slow"}',
    })
    await worker.said(/begun/)
    worker.signal('SIGTERM')
    const end = await worker.ended()
    await server.stop()

    expect(end.code).toBe(0)
    expect(end.stderr).toMatch(/begun\n.*\nended\n/)
    expect(JSON.parse(end.stdout)).toEqual({ queues: ['web'] })
  })

  it('ends at once with the second signal', async () => {
    const config = `export default { queues: { web: { processors: { stuck: () => { console.error('begun'); return new Promise(() => {}) } } } } }`
    const place = folder({ 'sluice.config.mjs': config })
    const server = await ServerProcess.start(place)

    await fetch(`${server.url}/v1/queues/web/jobs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"type":"stuck"}',
    })
    await server.cli.said(/begun/)
    server.cli.signal('SIGTERM')
    await server.cli.said(/once more to end at once/)
    server.cli.signal('SIGTERM')

    expect((await server.cli.ended()).code).toBe(143)
  })

  it('refuses a queue that is not there', async () => {
    const { code, stderr } = await sluice(['worker', '--queue', 'web', '--only', 'wbe'], { cwd: folder() })

    expect({ code, stderr }).toEqual({ code: 2, stderr: 'sluice: --only: no queue is called wbe; there are web\n' })
  })
})

describe('sluice keys create', () => {
  it('refuses a tenant without the role, and the role without a tenant', async () => {
    const [role, tenant] = await Promise.all([
      sluice(['keys', 'create', '--role', 'tenant']),
      sluice(['keys', 'create', '--role', 'viewer', '--tenant', 'acme']),
    ])

    expect([role.code, tenant.code]).toEqual([2, 2])
  })
})
