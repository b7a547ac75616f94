import { callback, checkOptions, integer, optional, type Rule, record, show } from '../../assert.ts'
import { checkHttpRequestOptions } from '../../bulk/http-request/options.ts'
import type { ServedQueue } from '../../config/define-config.ts'
import { checkQueueOptions, queueNameRule } from '../../engine/queue-options.ts'
import { checkSchedule, type ScheduleInput } from '../../engine/schedules/schedule-input.ts'
import { InvalidOptionsError, type OptionProblem } from '../../errors.ts'
import { problemOfName } from '../../store/names.ts'
import { ownOptionsOf } from './open-queues.ts'

const asGiven: Rule<unknown> = (value) => value

const shares: Rule<unknown> = (value, path, report) => {
  const isList = value === undefined || (Array.isArray(value) && value.every((name) => typeof name === 'string'))
  if (!isList) report(path, `must be a list of names of limits, not ${show(value)}`)
  return value
}

const processors: Rule<unknown> = (value, path, report) => {
  const given = record(callback())(value, path, report)
  for (const type of Object.keys(given)) {
    const problem = problemOfName(type)
    if (problem) report(path, `has a type, ${show(type)}, that ${problem}`)
  }
  return given
}

/** What a queue has beside the options of the library. */
const servedRules = {
  // It is also how many connections http.request has at once.
  concurrency: optional(integer({ min: 1, max: 10_000 })),
  http: record(asGiven),
  shares,
  schedules: record(asGiven),
  processors,
}

/**
 * All that a queue of the config file can get wrong by itself, before anything is opened.
 * @throws InvalidOptionsError that names every option that cannot be used.
 */
export function checkServedQueue(name: string, served: ServedQueue): void {
  const subject = `queue "${name}"`
  const problems: OptionProblem[] = []
  const attempt = <Settings>(place: string, check: () => Settings): Settings | undefined => {
    try {
      return check()
    } catch (error) {
      if (!(error instanceof InvalidOptionsError)) throw error
      problems.push(...error.problems.map(({ path, problem }) => ({ path: place + path, problem })))
      return undefined
    }
  }
  const { concurrency, http, shares, schedules, processors } = served
  attempt('', () => checkOptions(subject, { name }, { name: queueNameRule }))
  const options = attempt('', () => checkQueueOptions(name, ownOptionsOf(served)))
  const beside = attempt('', () =>
    checkOptions(subject, { concurrency, http, shares, schedules, processors }, servedRules),
  )
  // Hosts may come from the command line.
  attempt('http.', () => checkHttpRequestOptions({ allowHosts: [], ...beside?.http }))
  for (const [schedule, input] of Object.entries(beside?.schedules ?? {})) {
    const largest = options?.maxPayloadBytes ?? Number.POSITIVE_INFINITY
    // Whatever the file says: this is the check.
    attempt(`schedules.${schedule}.`, () => checkSchedule(schedule, input as ScheduleInput, largest))
  }
  if (problems.length > 0) throw new InvalidOptionsError(subject, problems)
}
