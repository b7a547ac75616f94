import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { createServer } from '../../src/http/index.ts'
import { httpRequest, PermanentError, type Queue, Sluice } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { read, root } from './markdown.ts'

/** Queues that examples name. */
const queueNames = ['default', 'promotions', 'mail', 'reports'] as const

export interface SceneOptions {
  readonly redis: string
  /** An API to call. */
  readonly upstream: string
  /** Where commands are typed. */
  readonly folder: string
  /** Of its own, so that no example meets what another has left. */
  readonly prefix: string
}

/** What an example finds: a running server, files in its folder, and the jobs, actions and schedules that it names. */
export class Scene {
  readonly url: string
  readonly #sluice: Sluice
  readonly #server: FastifyInstance
  readonly #handler: ReturnType<typeof httpRequest>

  private constructor(parts: {
    url: string
    sluice: Sluice
    server: FastifyInstance
    handler: ReturnType<typeof httpRequest>
  }) {
    this.url = parts.url
    this.#sluice = parts.sluice
    this.#server = parts.server
    this.#handler = parts.handler
  }

  static async open({ redis, upstream, folder, prefix }: SceneOptions): Promise<Scene> {
    writeFiles(folder, upstream)
    const sluice = new Sluice({ redis, prefix, log: () => {} })
    const handler = httpRequest({ allowHosts: [new URL(upstream).host], allowPrivate: ['127.0.0.1'] })
    const queues = Object.fromEntries(
      queueNames.map((name) => [name, sluice.queue(name, { limits: { queue: '1000/s', tenant: '500/s' } })]),
    )
    for (const queue of Object.values(queues)) {
      queue.process('http.request', handler)
      queue.process('send', (job) => job.payload)
      queue.process('refused', () => {
        throw new PermanentError('timeout')
      })
    }
    const server = createServer({ sluice, queues })
    const url = await server.listen({ host: '127.0.0.1', port: 0 })
    return new Scene({ url, sluice, server, handler })
  }

  /**
   * Makes what the example names; whoever adds an example that names something new adds here how it comes to be.
   * @returns The example with names that nobody can choose: keys of jobs have instants in them.
   */
  async prepare(example: string): Promise<string> {
    const queue = this.#sluice.queue(/--queue (\w+)/.exec(example)?.[1] ?? 'default')
    const key = /normal:default:\d+:acme/
    // First, because it needs a tenant that is not paused yet.
    const typed = new RegExp(`${key.source}|dead ls`).test(example)
      ? example.replace(key, await deadLetter(queue))
      : example
    if (example.includes('order-17')) {
      await queue.submit({ tenant: 'acme', type: 'send', id: 'order-17', payload: {}, delayMs: 3_600_000 })
    }
    if (example.includes('promotions:acme:summer-sale')) await this.#summerSale(example)
    if (/(actions|tenants) ls/.test(example)) {
      await queue.tenant('acme').pause()
      await queue.submit({ tenant: 'acme', action: 'june', type: 'send', jobs: [{ payload: {} }] })
    }
    if (/schedules (?!set).* nightly/.test(example)) {
      await queue.schedules.set('nightly', { cron: '0 3 * * *', job: { type: 'send', tenant: 'acme' } })
    }
    return typed
  }

  /** Open for those that go on with it, else at its end; one that is retried has a job that failed. */
  async #summerSale(example: string): Promise<void> {
    const isOpen = / (add|seal|cancel) /.test(example)
    const types = example.includes(' retry ') ? ['send', 'refused'] : ['send']
    const action = await this.#sluice.queue('promotions').submit({
      tenant: 'acme',
      action: 'summer-sale',
      type: 'send',
      keepResults: true,
      seal: !isOpen,
      jobs: types.map((type) => ({ type, payload: {} })),
    })
    if (!isOpen) await action.finished()
  }

  async close(): Promise<void> {
    await this.#server.close()
    await this.#sluice.close()
    this.#handler.close()
  }
}

async function deadLetter(queue: Queue): Promise<string> {
  const { id } = await queue.submit({ tenant: 'acme', type: 'refused', payload: {} })
  await until(async () => (await queue.job(id))?.state === 'failed', { what: 'it is a dead letter' })
  return id
}

/** Those that examples name, and what a project has. */
function writeFiles(folder: string, upstream: string): void {
  const lines = (of: (n: number) => object) => [1, 2].map((n) => `${JSON.stringify(of(n))}\n`).join('')
  const call = (n: number) => ({ url: `${upstream}/${n}` })
  const files = {
    'calls.ndjson': lines(call),
    'jobs.ndjson': lines((n) => ({ payload: { n } })),
    'more.ndjson': lines((n) => ({ payload: { n } })),
    'urls.ndjson.gz': gzipSync(lines(call)),
    'plan.json': read('examples/simulate/two-customers.json'),
    // A port of its own, for servers that examples start.
    'sluice.config.mjs': 'export default { port: 0, queues: { promotions: {}, mail: {} } }',
    'sluice.config.ts': "export { default } from './sluice.config.mjs'",
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content)
}
