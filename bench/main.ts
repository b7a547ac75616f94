import { startRedis } from '../src/testing/redis-server.ts'
import { type BenchArguments, benchArguments } from './arguments.ts'
import { claimCost } from './engine/claim-cost.ts'
import { flood } from './engine/flood.ts'
import { handlers } from './engine/handlers.ts'
import { idle } from './engine/idle.ts'
import { jain } from './engine/jain.ts'
import { limiter } from './engine/limiter.ts'
import { memory } from './engine/memory.ts'
import { processNoop } from './engine/process.ts'
import { processLimited } from './engine/process-limited.ts'
import { recovery } from './engine/recovery.ts'
import { scripts } from './engine/scripts.ts'
import { smallTenant } from './engine/small-tenant.ts'
import { submit } from './engine/submit.ts'
import { throttle } from './engine/throttle.ts'
import { upstreamLimit } from './engine/upstream-limit.ts'
import type { Figures, Measure } from './measure.ts'
import { printTable } from './table.ts'

const GROUPS = {
  engine: [
    idle,
    recovery,
    submit,
    processNoop,
    processLimited,
    handlers,
    limiter,
    scripts,
    memory,
    claimCost,
    throttle,
    smallTenant,
    jain,
    upstreamLimit,
    flood,
  ],
} satisfies Record<string, readonly Measure[]>

const { measures, quick, json } = readArguments()
/** The JSON line is all that goes to standard output with `--json`. */
const print = json ? console.error : console.log

function readArguments(): BenchArguments {
  try {
    return benchArguments(process.argv.slice(2), GROUPS)
  } catch (error) {
    console.error(`${(error as Error).message}. Options are --only NAME,..., --quick and --json.`)
    process.exit(2)
  }
}

/** Each measure has a Redis of its own, without persistence: the disk is no part of any figure. */
async function runMeasure(measure: Measure): Promise<Figures> {
  const startedAt = performance.now()
  const redis = await startRedis()
  try {
    const figures = await measure.run({ quick, redis, meter: redis.client() })
    console.error(`${measure.title}: ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`)
    return figures
  } catch (error) {
    throw new Error(`${measure.name} failed`, { cause: error })
  } finally {
    await redis.stop()
  }
}

async function runAll(): Promise<Figures> {
  const ofKind = (kind: Measure['kind']): Measure[] => measures.filter((measure) => (measure.kind ?? 'speed') === kind)
  const waiting = Promise.all(ofKind('waiting').map(runMeasure))
  // Reported where it is awaited, not as unhandled while the others run.
  waiting.catch(() => {})
  const figures: Figures[] = []
  for (const measure of ofKind('speed')) figures.push(await runMeasure(measure))
  if (quick) figures.push(...(await Promise.all(ofKind('counting').map(runMeasure))))
  else for (const measure of ofKind('counting')) figures.push(await runMeasure(measure))
  figures.push(...(await waiting))
  return Object.assign({}, ...figures)
}

const figures = await runAll()
printTable(figures, print)
if (json) console.log(JSON.stringify(figures))
