import { execFile } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Action, Sluice } from 'sluice'
import { startRedis, startUpstream, type TestRedis, type Upstream } from 'sluice/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { errorCodes, type SluiceErrorCode } from '../../src/errors.ts'
import { createApiKey } from '../../src/http/api-keys.ts'
import { problemKinds } from '../../src/http/problem.ts'
import { kindsOfCodes } from '../../src/http/sluice-problems.ts'
import { observeQueue } from '../../src/sluice.ts'
import { freePort } from '../../src/testing/redis-server.ts'
import { codeBlocks, read } from '../docs/markdown.ts'
import { ExampleProcess } from './example-process.ts'
import { buildPackage, ExampleProject, exampleFiles } from './example-project.ts'

const execute = promisify(execFile)

interface Manifest {
  name: string
  scripts: Record<string, string>
  version: string
  dependencies: Record<string, string>
  devDependencies: Record<string, string>
}

const kinds = [
  { nest: 'nest-12', kind: 'module', db: 1 },
  { nest: 'nest-11', kind: 'commonjs', db: 2 },
  { nest: 'nest-11', kind: 'module', db: 3 },
  { nest: 'nest-12', kind: 'commonjs', db: 4 },
] as const

describe('the application of the guide', () => {
  let redis: TestRedis
  let partner: Upstream
  let built: string
  const projects: ExampleProject[] = []
  // Tests run beside each other, so what they start ends with the last of them.
  const applications: ExampleProcess[] = []
  const open: Sluice[] = []

  beforeAll(async () => {
    ;[redis, partner, built] = await Promise.all([
      startRedis(),
      startUpstream({ limit: 100_000, latencyMs: 150 }),
      buildPackage(),
    ])
    for (const { nest, kind } of kinds) projects.push(new ExampleProject(built, nest, kind))
  }, 180_000)

  afterAll(async () => {
    await Promise.all(applications.map((application) => application.end('SIGKILL')))
    await Promise.all(open.map((sluice) => sluice.close()))
    for (const project of projects) project.remove()
    rmSync(built, { recursive: true, force: true })
    await Promise.all([redis.stop(), partner.stop()])
  })

  const environment = (db: number) => ({ REDIS_URL: `${redis.url}/${db}`, PARTNER_URL: partner.url })

  async function start(index: number, entry?: string, env: Record<string, string> = {}): Promise<ExampleProcess> {
    const { folder } = projects[index] as ExampleProject
    const application = await ExampleProcess.start(folder, { ...environment(kinds[index]?.db ?? 0), ...env }, entry)
    applications.push(application)
    return application
  }

  function sluiceIn(db: number): Sluice {
    const sluice = new Sluice({ redis: `${redis.url}/${db}` })
    open.push(sluice)
    return sluice
  }

  /** How often the partner was called for each recipient. */
  async function callsTo(send: string): Promise<Map<string, number>> {
    const calls = new Map<string, number>()
    for (const { path } of await partner.calls()) {
      if (path.startsWith(`/${send}-`)) calls.set(path, (calls.get(path) ?? 0) + 1)
    }
    return calls
  }

  /** Resolves when that many jobs have ended. */
  async function reached(action: Action, count: number): Promise<void> {
    for await (const { done } of action.progress()) if (done >= count) return
  }

  it('has the files that the guide shows', () => {
    const shown = codeBlocks(read('docs/guides/nestjs.md')).filter(({ language }) => language === 'ts')
    const files = shown.map(({ text }) => text.slice('// '.length, text.indexOf('\n')))

    expect(files.sort()).toEqual(exampleFiles())
    for (const { text } of shown) {
      const [first = '', ...lines] = text.split('\n')
      expect(`${lines.join('\n')}\n`).toBe(read(`examples/nestjs/${first.slice('// '.length)}`))
    }
  })

  it('asks for this version of Sluice, and otherwise for what it is tried with', () => {
    const { version, devDependencies: ours } = JSON.parse(read('package.json')) as Manifest
    const { dependencies, devDependencies } = JSON.parse(read('examples/nestjs/package.json')) as Manifest

    const { sluice, ...others } = { ...dependencies, ...devDependencies }

    expect(sluice).toBe(`^${version}`)
    expect(ours).toMatchObject(others)
  })

  it.each([0, 1])('compiles, for both kinds of modules and both versions (%i)', async (index) => {
    const project = projects[index] as ExampleProject

    expect(await project.compile()).toBe('')

    // Its twin of the other version is the same program.
    projects[index + 2]?.takeCompiled(project)
  })

  describe.concurrent.each(kinds.map((each, index) => ({ ...each, index })))(
    'with $nest as $kind',
    ({ nest, kind, db, index }) => {
      const people = (send: string, count: number) =>
        Array.from({ length: count }, (_, n) => `${send}-${n}@example.org`)

      it('loses nothing when it is killed −9, and repeats only what it held; SIGTERM lets running jobs end', async () => {
        const [first, second] = [`${nest}-${kind}-first`, `${nest}-${kind}-second`]
        const queue = observeQueue(sluiceIn(db), 'promotions')
        const victim = await start(index)
        const sent = await victim.post<{ action: string }>('/promotions/acme', people(first, 300))
        const action = queue.action(sent.action, { tenant: 'acme' })
        await reached(action, 100)

        await victim.end('SIGKILL')
        const held = (await queue.counts()).running
        const heir = await start(index)
        const { counts } = await action.finished()

        const calls = await callsTo(first)
        const repeated = [...calls.values()].filter((count) => count > 1)
        expect(counts).toMatchObject({ total: 300, succeeded: 300, failed: 0 })
        expect(calls.size).toBe(300)
        expect(held).toBeGreaterThan(0)
        expect(repeated.length).toBeLessThanOrEqual(held)
        expect(Math.max(...calls.values())).toBeLessThanOrEqual(2)
        expect(await heir.get(`/promotions/acme/${sent.action}`)).toMatchObject({ state: 'COMPLETED', counts })
        expect(await heir.get('/health')).toMatchObject({ sluice: { status: 'up' } })
        await heir.said(/action\.completed: \S+ of acme/)

        const more = await heir.post<{ action: string }>('/promotions/acme', people(second, 200))
        await reached(queue.action(more.action, { tenant: 'acme' }), 30)
        const endedBy = await heir.end('SIGTERM')

        const view = await queue.action(more.action, { tenant: 'acme' }).view()
        const drained = await callsTo(second)
        expect(endedBy).toBe('SIGTERM')
        expect(drained.size).toBeLessThan(200)
        expect([...drained.values()].every((count) => count === 1)).toBe(true)
        expect(view?.counts).toMatchObject({ running: 0, succeeded: drained.size, waiting: 200 - drained.size })
      })
    },
  )

  it('is installed, started and asked by what the guide has one type', async () => {
    const shown = codeBlocks(read('docs/guides/nestjs.md')).filter(({ language }) => language === 'sh')
    const [install, run, ask] = shown.map(({ text }) => text)
    const { name } = JSON.parse(read('package.json')) as Manifest
    const { scripts } = JSON.parse(read('examples/nestjs/package.json')) as Manifest
    const application = await start(0)

    const asked = ask?.replace('http://127.0.0.1:3000', application.url) ?? ''
    const { stdout } = await execute('bash', ['-euo', 'pipefail', '-c', asked])

    const { action } = JSON.parse(stdout) as { action: string }
    const { counts } = await observeQueue(sluiceIn(1), 'promotions').action(action, { tenant: 'acme' }).finished()
    expect(counts).toMatchObject({ total: 2, succeeded: 2 })
    expect(shown).toHaveLength(3)
    // What npm does is not done again here: this is what `start` has started.
    expect(install).toBe(`npm install ${name}`)
    expect(run).toBe('npm run start')
    expect(scripts.start).toBe('node dist/main.js')
  })

  // Those of which nothing runs any more: another process of the same database would do what this one is to do.
  it.each([2, 3])('is looked at and operated through controllers of its own (%i)', async (index) => {
    const queue = observeQueue(sluiceIn(kinds[index]?.db ?? 0), 'promotions')
    // Without a partner it pretends to have one, which knows nobody without an @.
    const application = await start(index, 'main.js', { PARTNER_URL: '' })
    const tenant = '/operations/tenants/operated'
    const ask = async (method: string, path: string, body?: unknown) => {
      const headers = { 'content-type': 'application/json' }
      const sent = body === undefined ? { method } : { method, headers, body: JSON.stringify(body) }
      const reply = await fetch(application.url + path, sent)
      return { status: reply.status, type: reply.headers.get('content-type'), text: await reply.text() }
    }
    const listed = async (query: string) =>
      JSON.parse((await ask('GET', `/operations/dead-letters${query}`)).text) as { letters: { key: string }[] }

    const paused = await ask('POST', `${tenant}/pause`)
    const { action: name } = await application.post<{ action: string }>('/promotions/operated', ['nobody'])
    const other = await application.post<{ action: string }>('/promotions/operated', ['somebody'])
    const canceled = await ask('DELETE', `/promotions/operated/${other.action}`)
    const once = await ask('PUT', '/promotions/operated/spring', ['ann@example.org', 'ann@example.org'])
    const again = await ask('PUT', '/promotions/operated/spring', ['bob@example.org'])
    const noneToCancel = await ask('DELETE', '/promotions/operated/other')
    const why = await ask('GET', `${tenant}/why`)
    const limits = await ask('PUT', `${tenant}/limits`, { calls: '20/s' })
    const noRate = await ask('PUT', `${tenant}/limits`, { calls: 'often' })
    const noTenant = await ask('POST', `/promotions/${'x'.repeat(300)}/welcome/ann@example.org`)
    const action = await ask('GET', `/operations/actions/${queue.action(name, { tenant: 'operated' }).id}`)
    const noAction = await ask('GET', '/operations/actions/promotions:operated:other')
    const noId = await ask('GET', '/operations/actions/other')
    const resumed = await ask('POST', `${tenant}/resume`)
    await queue.drain({ tenant: 'operated' })
    const letters = await listed('')
    const after = await listed('?cursor=0.')
    const retried = await ask('POST', `/operations/dead-letters/${letters.letters[0]?.key}/retry`)
    const noLetter = await ask('POST', '/operations/dead-letters/other/retry')
    const metrics = await ask('GET', '/metrics')

    expect([paused.status, resumed.status, retried.status]).toEqual([201, 201, 201])
    const text = expect.stringContaining('text/plain')
    expect(why).toMatchObject({ status: 200, type: text, text: expect.stringContaining('paused') })
    expect(JSON.parse(canceled.text)).toMatchObject({ state: 'CANCELED', counts: { canceled: 1 } })
    expect(JSON.parse(once.text)).toMatchObject({ state: 'DISPATCHED', counts: { total: 1, waiting: 1 } })
    expect(again).toEqual(once)
    expect(noneToCancel.status).toBe(404)
    expect(JSON.parse(limits.text)).toMatchObject({ name: 'calls', limit: 20 })
    expect(JSON.parse(action.text)).toMatchObject({ counts: { total: 1, waiting: 1 } })
    expect(letters).toMatchObject({ total: 1, letters: [{ payload: { to: 'nobody' }, reason: 'discarded' }] })
    expect(after).toEqual({ total: 1, letters: [] })
    expect([noAction.status, noId.status, noLetter.status]).toEqual([404, 404, 404])
    expect(noRate).toMatchObject({ status: 400, text: expect.stringContaining('often') })
    expect(noTenant).toMatchObject({ status: 400, text: expect.stringContaining('cannot be submitted') })
    expect(metrics).toMatchObject({
      status: 200,
      type: text,
      text: expect.stringContaining('sluice_dead_letters_retried_total{queue="promotions"} 1'),
    })
  })

  it('takes jobs in a process that runs none, and runs them in one without a server', async () => {
    const env = { REDIS_URL: `${redis.url}/5` }
    const queue = observeQueue(sluiceIn(5), 'promotions')
    const api = await start(0, 'main.js', { ...env, ROLE: 'api' })

    const { action } = await api.post<{ action: string }>('/promotions/acme', ['role-1@example.org'])
    const before = await queue.counts()
    const port = await freePort()
    const { key, hash } = createApiKey()
    const worker = await start(0, 'worker.js', { ...env, WORKER_PORT: String(port), WORKER_KEY_HASH: hash })
    await worker.said(/SEND_PROMOTION of acme took \d+ ms/)
    await api.said(/action\.completed: \S+ of acme, 0 jobs failed/)
    const askWorker = (path: string, headers = {}) => fetch(`http://127.0.0.1:${port}${path}`, { headers })
    const metrics = await askWorker('/metrics', { authorization: `Bearer ${key}` })
    const withoutKey = await Promise.all(['/metrics', '/healthz', '/readyz'].map((path) => askWorker(path)))

    expect(await metrics.text()).toContain('sluice_job_run_seconds_count')
    expect(withoutKey.map(({ status }) => status)).toEqual([401, 200, 200])
    expect(before).toMatchObject({ waiting: 1, running: 0 })
    expect(await callsTo('role')).toEqual(new Map([['/role-1@example.org', 1]]))
    expect(await api.get(`/promotions/acme/${action}`)).toMatchObject({ state: 'COMPLETED' })
  })

  it('has a module whose options come from factories, and whose limit others may share', async () => {
    const { folder } = projects[0] as ExampleProject
    const program = `import { NestFactory } from '@nestjs/core'
      import { getQueueToken } from 'sluice/nestjs'
      import { ConfiguredModule } from './dist/configured.module.js'
      const app = await NestFactory.createApplicationContext(ConfiguredModule, { logger: false })
      const queue = app.get(getQueueToken('promotions'), { strict: false })
      await queue.submit({ tenant: 'acme', type: 'SEND_PROMOTION', payload: { to: 'configured-1@example.org' } })
      await queue.drain()
      const declared = await queue.limits.status('calls')
      await app.get('PARTNER_LIMIT', { strict: false }).change('150/s')
      const changed = await queue.limits.status('calls')
      console.log(JSON.stringify([declared.limit, changed.limit]))
      await app.close()`
    writeFileSync(join(folder, 'configured.mjs'), program)

    const env = { ...process.env, REDIS_URL: `${redis.url}/6`, PARTNER_URL: partner.url }
    const { stdout } = await execute(process.execPath, ['configured.mjs'], { cwd: folder, env })

    expect(JSON.parse(stdout)).toEqual([300, 150])
    expect(await callsTo('configured')).toEqual(new Map([['/configured-1@example.org', 1]]))
  })

  it.each([0, 1])('has tests that pass without a Redis (%i)', async (index) => {
    const { folder } = projects[index] as ExampleProject

    // Versions of Node differ in what they print by default.
    const command = ['--test', '--test-reporter=tap', 'dist/promotions/promotions.test.js']
    const { stdout } = await execute(process.execPath, command, { cwd: folder })

    expect(stdout).toMatch(/^# pass 2$/m)
  })

  it.each([0, 1])('says through @nestjs/terminus how Redis is (%i)', async (index) => {
    const { folder } = projects[index] as ExampleProject
    const program = `import 'reflect-metadata'
      import { Module } from '@nestjs/common'
      import { NestFactory } from '@nestjs/core'
      import { TerminusModule } from '@nestjs/terminus'
      import { SluiceModule } from 'sluice/nestjs'
      import { TerminusController } from './dist/terminus.controller.js'
      async function ask(redis) {
        class Root {}
        Module({
          imports: [TerminusModule, SluiceModule.forRoot({ redis, commandTimeoutMs: 100 })],
          controllers: [TerminusController],
        })(Root)
        const app = await NestFactory.create(Root, { logger: false })
        await app.listen(0, '127.0.0.1')
        const reply = await fetch(await app.getUrl() + '/terminus')
        const answer = [reply.status, (await reply.json()).details]
        await app.close()
        return answer
      }
      const all = await Promise.all([ask(process.env.REDIS_URL), ask('redis://127.0.0.1:1')])
      console.log(JSON.stringify(all))`
    writeFileSync(join(folder, 'terminus.mjs'), program)

    const env = { ...process.env, REDIS_URL: redis.url }
    const { stdout } = await execute(process.execPath, ['terminus.mjs'], { cwd: folder, env })

    expect(JSON.parse(stdout)).toEqual([
      [200, { sluice: { status: 'up', latencyMs: expect.any(Number) } }],
      [503, { sluice: { status: 'down', message: expect.stringContaining('Redis is not available') } }],
    ])
  })

  it.each([0, 1])(
    'answers errors of Sluice with the statuses of its own server, others as ever (%i)',
    async (index) => {
      const { folder } = projects[index] as ExampleProject
      const codes = Object.keys(errorCodes) as SluiceErrorCode[]
      const program = `import 'reflect-metadata'
      import { Controller, Get, Inject, Module, Param } from '@nestjs/common'
      import { HttpAdapterHost, NestFactory } from '@nestjs/core'
      import { getQueueToken, SluiceModule } from 'sluice/nestjs'
      import { SluiceErrorFilter } from './dist/sluice-error.filter.js'
      const job = { type: 'SEND_PROMOTION', payload: {} }
      const calls = {
        read: (queue) => queue.counts(),
        submit: (queue) => queue.submit(job, { signal: AbortSignal.timeout(50) }),
        other: () => { throw new Error('something else') },
      }
      const raise = (code) => { throw Object.assign(new Error(code), { code, [Symbol.for('sluice.error')]: true }) }
      for (const code of ${JSON.stringify(codes)}) calls[code] = () => raise(code)
      class Calls {
        constructor(queue) { this.queue = queue }
        call(name) { return calls[name](this.queue) }
      }
      Controller()(Calls)
      Inject(getQueueToken('promotions'))(Calls, undefined, 0)
      Param('name')(Calls.prototype, 'call', 0)
      Get(':name')(Calls.prototype, 'call', Object.getOwnPropertyDescriptor(Calls.prototype, 'call'))
      class Root {}
      Module({
        imports: [
          SluiceModule.forRoot({ redis: 'redis://127.0.0.1:1', commandTimeoutMs: 100 }),
          SluiceModule.registerQueue({ name: 'promotions' }),
        ],
        controllers: [Calls],
      })(Root)
      const app = await NestFactory.create(Root, { logger: false })
      app.useGlobalFilters(new SluiceErrorFilter(app.get(HttpAdapterHost).httpAdapter))
      await app.listen(0, '127.0.0.1')
      const answers = {}
      for (const name of Object.keys(calls)) {
        const reply = await fetch(await app.getUrl() + '/' + name)
        answers[name] = [reply.status, (await reply.json()).message]
      }
      await app.close()
      console.log(JSON.stringify(answers))`
      writeFileSync(join(folder, 'filter.mjs'), program)

      const { stdout } = await execute(process.execPath, ['filter.mjs'], { cwd: folder })

      const later = 'Not available at the moment. Try again later.'
      const other = [500, 'Internal server error']
      const answerTo = (code: SluiceErrorCode) => {
        const { status } = problemKinds[kindsOfCodes[code]]
        return status === 500 ? other : [status, status < 500 ? code : later]
      }
      expect(JSON.parse(stdout)).toEqual({
        read: [503, later],
        submit: [503, later],
        other,
        ...Object.fromEntries(codes.map((code) => [code, answerTo(code)])),
      })
    },
  )
})
