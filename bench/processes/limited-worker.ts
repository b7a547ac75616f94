import { limitedSide } from '../sides/limited.ts'
import type { RunningWorker, Side } from '../sides/side.ts'
import { parentPort } from './child.ts'
import type { FromLimitedWorker, LimitedRun, ToLimitedWorker } from './messages.ts'
import { connectUpstream, type UpstreamClient } from './upstream-client.ts'

/** A worker process whose handlers call the upstream at once. It can serve several queues at a time. */
const CONCURRENCY = 50

const parent = parentPort<ToLimitedWorker, FromLimitedWorker>()
const running = new Map<number, { side: Side; worker: RunningWorker; upstream: UpstreamClient }>()

parent.onMessage((message) => {
  const work = message.kind === 'start' ? start(message.run) : stop(message.channel)
  work.catch((error: unknown) => {
    console.error(error)
    process.exit(1)
  })
})
parent.send({ kind: 'ready' })

async function start(run: LimitedRun): Promise<void> {
  const upstream = await connectUpstream(run.upstreamPort, run.channel)
  const side = limitedSide(run)
  const worker = await side.work({ concurrency: CONCURRENCY }, () => upstream.call())
  running.set(run.channel, { side, worker, upstream })
  parent.send({ kind: 'started', channel: run.channel })
}

async function stop(channel: number): Promise<void> {
  const run = running.get(channel)
  running.delete(channel)
  await run?.worker.close()
  await run?.side.close()
  run?.upstream.close()
  parent.send({ kind: 'stopped', channel })
}
