import type { Listed } from './catalogue.ts'
import type { Outcome, Scenario } from './scenario.ts'

export interface Result extends Outcome {
  readonly name: string
  readonly group: string
  readonly seconds: number
  /** What it threw, or that its time was over. */
  readonly error?: string
}

const TIME_LIMIT_MS = { short: 120_000, full: 900_000 }
/** A server that does not end within this is told of, and the next scenario begins. */
const STOP_LIMIT_MS = 15_000

/** Runs one to its end, its time limit or an interruption, and ends whatever it has started. Never throws. */
export async function runScenario(
  { group, scenario }: Listed,
  options: { full: boolean; interruption: AbortSignal; log: (line: string) => void },
): Promise<Result> {
  const startedAt = performance.now()
  const stops: (() => unknown)[] = []
  const failure = new AbortController()
  // Of a timer or a listener: nobody awaits it.
  const fail = (error: Error): void => failure.abort(error)
  process.on('uncaughtException', fail)
  const interruption = AbortSignal.any([options.interruption, failure.signal])
  const outcome = await outcomeOf(scenario, { ...options, interruption, onEnd: (stop) => stops.push(stop) })
  const unstopped = await stopAll(stops)
  process.off('uncaughtException', fail)
  const seconds = Math.round((performance.now() - startedAt) / 100) / 10
  const error = [outcome.error, ...unstopped].filter((message) => message !== undefined).join('; ')
  return {
    name: scenario.name,
    group,
    ...outcome,
    pass: outcome.pass && error === '',
    seconds,
    ...(error !== '' && { error }),
  }
}

async function outcomeOf(
  scenario: Scenario,
  context: {
    full: boolean
    interruption: AbortSignal
    log: (line: string) => void
    onEnd: (stop: () => unknown) => void
  },
): Promise<Outcome & { error?: string }> {
  const { full, log, onEnd, interruption } = context
  const limitMs = (scenario.timeLimitMs ?? TIME_LIMIT_MS)[full ? 'full' : 'short']
  const timeOver = new AbortController()
  const signal = AbortSignal.any([interruption, timeOver.signal])
  const timer = setTimeout(() => timeOver.abort(new Error(`did not end within ${limitMs / 1_000} s`)), limitMs)
  try {
    signal.throwIfAborted()
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
    })
    return await Promise.race([scenario.run({ full, signal, log, onEnd }), aborted])
  } catch (error) {
    return { pass: false, figures: {}, error: messageOf(error) }
  } finally {
    clearTimeout(timer)
  }
}

/** The last started is the first ended; one that cannot be ended keeps no other from it. */
async function stopAll(stops: (() => unknown)[]): Promise<string[]> {
  const problems: string[] = []
  for (const stop of stops.reverse()) {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`took over ${STOP_LIMIT_MS / 1_000} s`)), STOP_LIMIT_MS)
    })
    try {
      await Promise.race([stop(), late])
    } catch (error) {
      problems.push(`something it started could not be ended: ${messageOf(error)}`)
    } finally {
      clearTimeout(timer)
    }
  }
  return problems
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
