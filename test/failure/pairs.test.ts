/** Most disasters need two faults: here are pairs of which each alone is survived in the other tests. */
import { afterEach, describe, expect, it } from 'vitest'
import { startCluster } from '../support/cluster.ts'
import { runAgain } from '../support/history.ts'
import { startSentinels } from '../support/sentinels.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { expectAcceptedKept, loseMaster } from './failover.ts'
import { moveAround } from './resharding.ts'
import { Trial } from './trial.ts'
import { busyOne, type Worker } from './worker.ts'

let trial: Trial
const open: (() => Promise<void>)[] = []
afterEach(async () => {
  await trial.stop()
  for (const close of open.splice(0)) await close()
})

describe('two faults at once', () => {
  it('lost replies and a failover: what is repeated at the next master is not done twice', async () => {
    const sentinels = await startSentinels()
    const proxies = await Promise.all(sentinels.servers.map(({ port }) => TcpProxy.start({ port })))
    for (const proxy of proxies) open.push(() => proxy.close())
    const natMap = Object.fromEntries(
      sentinels.servers.map(({ port }, index) => [`127.0.0.1:${port}`, `127.0.0.1:${proxies[index]?.port}`]),
    )
    const topology = {
      redis: { ...sentinels.redis, natMap },
      masters: () => sentinels.masters(),
      stop: () => sentinels.stop(),
    }
    const queue = { leaseMs: 3_000 }
    trial = await Trial.start({ topology, upstream: true, durability: { replicas: 1 }, queue })
    const workers = await Promise.all([trial.worker(), trial.worker()])
    const streams = [trial.stream({ ordered: false }), trial.stream({ ids: 'generated', ordered: false })]
    await busyOne(workers, 100)

    const rules = proxies.map((proxy) => proxy.loseReplies({ containing: 'FCALL', every: 5 }))
    await loseMaster(trial, sentinels, workers, 'dead')
    await sentinels.heal()
    const [given] = await Promise.all(streams.map((stream) => stream.finish()))
    for (const rule of rules) rule.stop()

    expect(rules.reduce((sum, { lost }) => sum + lost, 0)).toBeGreaterThan(20)
    expect(given?.accepted).toBeGreaterThan(100)
    await expectAcceptedKept(trial)
  })

  it('a slot that moves and claims that are repeated: no job is popped and lost', async () => {
    const cluster = await startCluster({ replicas: 0 })
    trial = await Trial.start({ topology: cluster, upstream: true })
    const workers = await Promise.all([
      trial.worker({ mode: 'claim', concurrency: 3 }),
      trial.worker({ mode: 'claim', concurrency: 3 }),
    ])
    const stream = trial.stream({ tenants: ['a', 'b', 'c', 'd', 'e'] })
    await busyOne(workers, 30)

    await moveAround(cluster, 3)
    const { unheard } = await stream.finish()

    expect(unheard).toEqual([])
    const history = await trial.expectPromisesKept({ livenessMs: 20_000 })
    // Jobs that failed once run again; no other does.
    const retried = new Set(
      history.flatMap((event) => (event.kind === 'end' && event.result === 'failed' ? [event.job] : [])),
    )
    expect(runAgain(history).filter((job) => !retried.has(job))).toEqual([])
  })

  it('a killed worker and forgotten scripts: its jobs come back all the same', async () => {
    trial = await Trial.start({ upstream: true, queue: { leaseMs: 1_000 } })
    const direct = trial.redis.client()
    const flusher = setInterval(() => void direct.function('FLUSH'), 50)
    try {
      let workers: Worker[] = await Promise.all([trial.worker(), trial.worker()])
      const stream = trial.stream()
      for (let kills = 0; kills < 3; kills++) {
        const victim = await busyOne(workers, 40)
        trial.fault('kill', victim)
        await victim.end('SIGKILL')
        workers = [...workers.filter((worker) => worker !== victim), await trial.worker()]
      }
      await stream.finish()

      // The heir of a killed worker is a process that has yet to start.
      await trial.expectPromisesKept({ livenessMs: 30_000 })
    } finally {
      clearInterval(flusher)
    }
  })

  it('a full Redis and a killed worker: what is stored is recovered and finished, and nothing new gets in', async () => {
    trial = await Trial.start({ upstream: true, queue: { leaseMs: 1_000 } })
    const admin = trial.redis.client()
    const victim = await trial.worker({ hangs: true })
    await trial.submitted({ count: 200, holdMs: 5 })
    await victim.started(10)
    await admin.config('SET', 'maxmemory', 1)

    await expect(trial.queue.submit({ type: 'CALL', payload: {} })).rejects.toMatchObject({
      code: 'SLUICE_STORE_OUT_OF_MEMORY',
    })
    trial.fault('kill', victim)
    await victim.end('SIGKILL')
    // Its heir is of a version that was deployed just now: a full Redis takes no library.
    await admin.function('FLUSH')
    const heir = await trial.worker()
    await heir.ended(200)
    await trial.drained()
    await admin.config('SET', 'maxmemory', 0)

    await trial.expectPromisesKept({ livenessMs: 30_000 })
  })
})
