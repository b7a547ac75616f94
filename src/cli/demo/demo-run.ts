import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { httpRequest } from '../../bulk/http-request/http-request.ts'
import { type Action, type ActionProgress, type Queue, Sluice } from '../../index.ts'
import { stopEmbeddedServer } from '../../store/embedded.ts'
import { goFirst } from '../../testing/go-first.ts'
import { startUpstream, type Upstream } from '../../testing/upstream.ts'
import type { Output } from '../output.ts'
import { type Progress, ProgressBars } from '../progress-bar.ts'
import { type DemoTenant, demoPlan } from './demo-plan.ts'
import type { DemoFacts } from './demo-report.ts'
import type { Backlog } from './ideal-finish.ts'

/** The upstream, a Redis of its own and a worker, for as long as `use` takes; nothing of them is left. */
async function withDemo<Result>(
  use: (parts: { upstream: Upstream; queue: Queue }) => Promise<Result>,
): Promise<Result> {
  const { limit, windowMs, jitterMs, burst, latencyMs, concurrency } = demoPlan
  // What is shown is this queue, not what else the machine does. The servers inherit it.
  goFirst()
  const upstream = await startUpstream({ limit, windowMs, latencyMs })
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-demo-'))
  const handler = httpRequest({ allowHosts: [new URL(upstream.url).host], allowPrivate: ['127.0.0.1'] })
  const sluice = new Sluice({ redis: 'embedded', dataDir })
  try {
    const queue = sluice.queue('demo', { limits: { queue: { kind: 'bucket', limit, windowMs, jitterMs, burst } } })
    queue.process('http.request', handler, { concurrency })
    await sluice.ready()
    return await use({ upstream, queue })
  } finally {
    await sluice.close()
    handler.close()
    await upstream.stop()
    await stopEmbeddedServer({ dataDir })
    await rm(dataDir, { recursive: true, force: true })
  }
}

/** Lets every tenant of the plan submit its action, shows how they go on, and answers what was seen. */
export async function performDemo(output: Output, signal: AbortSignal): Promise<DemoFacts> {
  return withDemo(async ({ upstream, queue }) => {
    const board = new Board(output)
    const backlogs = await Promise.all(
      demoPlan.tenants.map(async (tenant) => {
        await sleep(tenant.afterMs, undefined, { signal })
        const { action, backlog } = await submitAction(queue, upstream, tenant)
        board.say(`${tenant.name} submits ${tenant.jobs.toLocaleString('en')} calls`)
        for await (const progress of action.progress({ signal })) board.note(tenant, progress)
        return backlog
      }),
    )
    board.end()
    const counts = await queue.counts()
    return { backlogs, counts, upstream: await upstream.report(), calls: await upstream.calls() }
  })
}

async function submitAction(
  queue: Queue,
  upstream: Upstream,
  { name, jobs, weight }: DemoTenant,
): Promise<{ action: Action; backlog: Backlog }> {
  await queue.tenant(name).set({ weight })
  const at = Number(process.hrtime.bigint()) / 1e6
  const action = await queue.submit({ tenant: name, type: 'http.request', jobs: callsOf(upstream.url, name, jobs) })
  return { action, backlog: { tenant: name, weight, at, jobs: action.accepted } }
}

function* callsOf(url: string, tenant: string, count: number) {
  for (let n = 1; n <= count; n++) yield { payload: { method: 'POST', url: `${url}/${tenant}/${n}`, body: { n } } }
}

/** The bars of all tenants that have come so far. */
class Board {
  readonly #bars: ProgressBars
  readonly #rows = new Map<string, Progress>()

  constructor(output: Output) {
    this.#bars = new ProgressBars(output)
  }

  say(line: string): void {
    this.#bars.say(line)
  }

  note({ name }: DemoTenant, { done, total, failed, perSecond, etaMs }: ActionProgress): void {
    this.#rows.set(name, { label: name, done, total, failed, perSecond, etaMs })
    this.#bars.update([...this.#rows.values()])
  }

  end(): void {
    this.#bars.end([...this.#rows.values()])
  }
}
