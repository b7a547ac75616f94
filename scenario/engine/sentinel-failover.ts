import { brokenBeside, type Failover, loseMaster, lostJobs } from '../../test/failure/failover.ts'
import { Trial } from '../../test/failure/trial.ts'
import { busyOne } from '../../test/failure/worker.ts'
import { describeViolations } from '../../test/support/checker.ts'
import { startSentinels } from '../../test/support/sentinels.ts'
import { judge } from '../judge.ts'
import type { Figures, Scenario, ScenarioContext } from '../scenario.ts'

// What the replicas may lack when they take over: they stand still for 150 ms before, and a busy machine adds to that.
const LOSS_WINDOW_MS = 1_000

export const scenario: Scenario = {
  name: 'sentinel-failover',
  description:
    'masters die and hang in turn while their replicas lag: work goes on in 5 s and 6 s, and durability loses nothing',
  timeLimitMs: { short: 240_000, full: 900_000 },

  async run(context) {
    const safe = await failOver(context, { times: context.full ? 10 : 2, isDurable: true })
    const plain = await failOver(context, { times: context.full ? 4 : 1, isDurable: false })
    const figures = {
      ...safe,
      lostWithoutDurability: plain.lost as number,
      oldestLostMs: plain.oldestLostMs as number,
      brokenWithoutDurability: plain.broken as number,
    }
    return judge(figures, {
      deadResumedMs: { atMost: 5_000 },
      hungResumedMs: { atMost: 6_000 },
      accepted: { atLeast: 100 },
      lost: { atMost: 0 },
      broken: { atMost: 0 },
      // A scenario without a loss would show nothing about durability.
      lostWithoutDurability: { atLeast: 1 },
      oldestLostMs: { atMost: LOSS_WINDOW_MS },
      brokenWithoutDurability: { atMost: 0 },
    })
  },
}

/** Dead and hung in turn. `lost` counts jobs that were accepted and never ended, `broken` all else that breaks a promise. */
async function failOver(
  { log, onEnd }: ScenarioContext,
  { times, isDurable }: { times: number; isDurable: boolean },
): Promise<Figures> {
  const sentinels = await startSentinels()
  onEnd(() => sentinels.stop())
  const durability = isDurable ? { replicas: 1 } : undefined
  const trial = await Trial.start({
    topology: sentinels,
    upstream: true,
    queue: { leaseMs: 3_000 },
    ...(durability && { durability }),
  })
  onEnd(() => trial.stop())
  const workers = await Promise.all([trial.worker(), trial.worker()])
  const streams = [trial.stream({ ordered: false }), trial.stream({ ids: 'generated', ordered: false })]
  await busyOne(workers, 200)

  const failovers: (Failover & { how: 'dead' | 'hung' })[] = []
  for (let round = 0; round < times; round++) {
    const how = round % 2 === 0 ? 'dead' : 'hung'
    const failover = await loseMaster(trial, sentinels, workers, how)
    log(`${how} master ${round + 1} of ${times}: work went on after ${Math.round(failover.resumedMs)} ms`)
    failovers.push({ ...failover, how })
    await sentinels.heal()
  }
  const results = await Promise.all(streams.map((stream) => stream.finish()))
  const { history, violations } = await trial.check({ forgetsMs: LOSS_WINDOW_MS, livenessMs: 30_000 })
  await trial.stop()

  const lost = lostJobs(history, violations, failovers)
  const broken = brokenBeside(violations)
  if (broken.length > 0) log(describeViolations(broken))
  return {
    failovers: times,
    deadResumedMs: longest(failovers, 'dead'),
    hungResumedMs: longest(failovers, 'hung'),
    accepted: results.reduce((sum, { accepted }) => sum + accepted, 0),
    lost: lost.length,
    oldestLostMs: Math.round(Math.max(0, ...lost.map(({ ageMs }) => ageMs))),
    broken: broken.length,
  }
}

function longest(failovers: readonly (Failover & { how: string })[], how: string): number {
  return Math.round(Math.max(0, ...failovers.filter((each) => each.how === how).map(({ resumedMs }) => resumedMs)))
}
