import { afterEach, beforeEach, expect, it } from 'vitest'
import { type QueueEvent, Sluice } from '../../src/index.ts'
import { startRedis, type TestRedis } from '../../src/testing/redis-server.ts'
import { CliProcess } from '../cli/cli-process.ts'
import { folderWith, removeFolder, ServerProcess } from '../cli/server-process.ts'

const JOBS = 50_000
const CONFIG = `export default {
  queues: { web: { concurrency: 50, processors: { send: (job) => job.payload } } },
}`
const ACTION = '/v1/actions/web:acme:fifty'

let redis: TestRedis
let folder: string
const ended: (() => Promise<unknown>)[] = []

beforeEach(async () => {
  redis = await startRedis()
  folder = folderWith({ 'sluice.config.mjs': CONFIG })
})

afterEach(async () => {
  for (const end of ended.splice(0)) await end()
  await redis.stop()
  await removeFolder(folder)
})

async function server(): Promise<ServerProcess> {
  const process = await ServerProcess.start(folder, ['--no-workers', '--redis', redis.url])
  ended.push(() => kill(process.cli))
  return process
}

function startWorker(): void {
  const process = new CliProcess(['worker', '--redis', redis.url], { cwd: folder })
  ended.push(() => kill(process))
}

async function kill(process: CliProcess): Promise<void> {
  process.signal('SIGKILL')
  await process.ended()
}

/** Fifty thousand lines, told how far they are. */
function lines(onLine: (line: number) => void): ReadableStream<Uint8Array> {
  let line = 0
  return new ReadableStream({
    async pull(controller) {
      const text = Array.from({ length: 500 }, (_, at) => `{"payload":${line + at}}\n`).join('')
      line += 500
      controller.enqueue(new TextEncoder().encode(text))
      onLine(line)
      // A client that is not faster than a network.
      await new Promise((resolve) => setTimeout(resolve, 20))
      if (line >= JOBS) controller.close()
    },
  })
}

function upload(url: string, onLine: (line: number) => void): Promise<Response> {
  return fetch(`${url}/v1/queues/web/actions?tenant=acme&type=send&keepResults=true`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson', 'idempotency-key': 'fifty' },
    body: lines(onLine),
    duplex: 'half',
  } as RequestInit)
}

it('an action of 50,000 jobs completes once, with exact counts, over a server that is killed −9 twice', async () => {
  startWorker()
  startWorker()
  const first = await server()

  // Once in the middle of the upload.
  const cut = upload(first.url, (line) => {
    if (line === JOBS / 2) void kill(first.cli)
  })
  await expect(cut).rejects.toThrow()
  const second = await server()
  const begun = (await (await fetch(second.url + ACTION)).json()) as { received: number; isSealed: boolean }
  const answer = await upload(second.url, () => {})
  const resumed = (await answer.json()) as { received: number; accepted: number }

  // And once while it runs.
  await kill(second.cli)
  const third = await server()
  const events = await (await fetch(`${third.url}${ACTION}/events`)).text()
  const summary = await (await fetch(`${third.url}${ACTION}/summary`)).json()
  const results = (await (await fetch(`${third.url}${ACTION}/results`)).text()).trimEnd().split('\n')

  expect(begun).toMatchObject({ isSealed: false })
  expect(begun.received).toBeGreaterThan(0)
  expect(begun.received).toBeLessThan(JOBS)
  expect(answer.status).toBe(202)
  expect(resumed).toMatchObject({ received: JOBS, accepted: JOBS - begun.received })
  expect(events).toContain('event: end')
  expect(summary).toMatchObject({
    state: 'COMPLETED',
    counts: { total: JOBS, succeeded: JOBS, failed: 0, canceled: 0, waiting: 0, running: 0, delayed: 0 },
  })
  expect(results.map((line) => (JSON.parse(line) as { result: number }).result)).toEqual(
    Array.from({ length: JOBS }, (_, n) => n),
  )
  expect(await completions()).toBe(1)
})

async function completions(): Promise<number> {
  const sluice = new Sluice({ redis: redis.url })
  try {
    const queue = sluice.queue('web')
    await queue.limits.change({ queue: '1000000/s' })
    const seen: QueueEvent[] = []
    for await (const event of queue.events({ from: '0' })) {
      if (event.type === 'limits.changed') break
      seen.push(event)
    }
    return seen.filter(({ type }) => type === 'action.completed').length
  } finally {
    await sluice.close()
  }
}
