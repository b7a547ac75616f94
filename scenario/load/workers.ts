import type { QueueOptions } from '../../src/index.ts'
import { goFirst } from '../../src/testing/go-first.ts'
import { type StartRedisOptions, startRedis, type TestRedis } from '../../src/testing/redis-server.ts'
import { Child } from '../../test/failure/child.ts'
import type { WorkerMessage, WorkerSettings } from '../../test/failure/worker-process.ts'
import { Upstream } from '../../test/support/upstream.ts'
import type { HttpWorkerSettings } from '../processes/http-worker-process.ts'
import type { ScenarioContext } from '../scenario.ts'

/** A Redis that is gone when the scenario is over. It goes before whatever else the machine does. */
export async function ownRedis({ onEnd }: ScenarioContext, options?: StartRedisOptions): Promise<TestRedis> {
  const redis = await startRedis(options)
  onEnd(() => redis.stop())
  goFirst(redis.pid)
  return redis
}

/** The recorder of calls, in a process of its own. */
export async function ownUpstream({ onEnd }: ScenarioContext): Promise<Upstream> {
  const upstream = await Upstream.start()
  onEnd(() => upstream.stop())
  return upstream
}

export interface WorkersOptions {
  readonly count: number
  readonly redis: TestRedis
  readonly queue: string
  readonly options?: QueueOptions
  readonly upstream: Upstream
  readonly concurrency: number
}

/** Worker processes whose jobs call the upstream at once; serving when this resolves. */
export async function startWorkers(
  { onEnd }: ScenarioContext,
  options: WorkersOptions,
): Promise<Child<WorkerMessage>[]> {
  const program = new URL('../../test/failure/worker-process.ts', import.meta.url)
  const workers = Array.from({ length: options.count }, (_, index) => {
    const settings: WorkerSettings = {
      name: `worker-${index}`,
      redis: options.redis.url,
      queue: options.queue,
      options: options.options ?? {},
      upstreamPort: options.upstream.port,
      concurrency: options.concurrency,
      mode: 'process',
      hangs: false,
      goesFirst: true,
    }
    const worker = new Child<WorkerMessage>(program.href, settings)
    onEnd(() => worker.end())
    return worker
  })
  await Promise.all(workers.map((worker) => worker.heard((heard) => heard.some(({ is }) => is === 'ready'))))
  return workers
}

/** Worker processes that run `http.request`; serving when this resolves. */
export async function startHttpWorkers(
  { onEnd }: ScenarioContext,
  { count, ...settings }: HttpWorkerSettings & { count: number },
): Promise<void> {
  const program = new URL('../processes/http-worker-process.ts', import.meta.url)
  const workers = Array.from({ length: count }, () => {
    const worker = new Child<{ is: 'ready' }>(program.href, settings)
    onEnd(() => worker.end())
    return worker
  })
  await Promise.all(workers.map((worker) => worker.heard((heard) => heard.length > 0)))
}
