import { Scope } from '@nestjs/common'
import { checkOptions, didYouMean, type Rule, show } from '../assert.ts'
import { eventTypes } from '../engine/events.ts'
import { type ProcessOptions, processRules } from '../engine/queue-options.ts'
import { InvalidOptionsError, type OptionProblem } from '../errors.ts'
import { problemOfName } from '../store/names.ts'
import type { ClassMark, MethodMark } from './marks.ts'
import { isPerJob, type Provider } from './provider-call.ts'

/** Which jobs a method runs, and how. */
export interface Placed {
  readonly queue: string
  readonly type: string
  /** `PromotionsProcessor.send`, for messages. */
  readonly where: string
  readonly options: ProcessOptions
}

/** Why a class can have no part in this; undefined when it can. */
export function problemOfClass(
  provider: Provider,
  classMarks: readonly ClassMark[],
  methods: readonly MethodMark[],
  queues: readonly string[],
): string | undefined {
  const [mark, second] = classMarks
  if (mark === undefined) return `has @${methods[0]?.decorator} methods, but no @Processor('queue') above the class`
  if (second !== undefined) {
    return 'has more than one @Processor or @QueueEventsListener: a class is for one queue. For a second queue derive a class from it, with a decorator of its own'
  }
  const name = `@${mark.decorator}(${JSON.stringify(mark.queue)})`
  if (!queues.includes(mark.queue)) {
    const { queue } = mark
    return `is for a queue that is not registered${didYouMean(queue, queues)}: ${name}. Import SluiceModule.registerQueue({ name: ${JSON.stringify(queue)} }), or correct the name`
  }
  if (methods.length === 0) return `has ${name}, but no method with @Process('TYPE') or @OnQueueEvent('job.dead')`
  const process = methods.find(({ decorator }) => decorator === 'Process')
  if (mark.decorator === 'QueueEventsListener' && process) {
    return `has ${name} and a method with @Process: jobs are run by a class with @Processor(${JSON.stringify(mark.queue)})`
  }
  if (provider.scope === Scope.TRANSIENT) {
    return 'is transient: leave out its scope, or give it Scope.REQUEST to have one for each job'
  }
  const isTold = methods.some(({ decorator }) => decorator === 'OnQueueEvent')
  if (isTold && isPerJob(provider)) {
    return 'has @OnQueueEvent, but is made anew for each job (it, or something it injects, has Scope.REQUEST). An event is no job: move the method to a class of its own with @QueueEventsListener'
  }
  return undefined
}

const ofTheClass: Rule<void> = (value, path, report) => {
  if (value !== undefined) report(path, 'is a matter of the class: give it to @Processor')
}
const methodRules = { ...processRules, concurrency: ofTheClass, levels: ofTheClass }

/** What is wrong with the words of decorators: all that `queue.process` would refuse, but before any queue runs. */
export function problemsOfMarks(className: string, mark: ClassMark, methods: readonly MethodMark[]): OptionProblem[] {
  const problems: OptionProblem[] = []
  if (mark.decorator === 'Processor') problems.push(...wrongOptions(className, mark.process, processRules))
  for (const method of methods) {
    const where = `${className}.${String(method.key)}`
    if (method.decorator === 'Process') {
      const problem = problemOfName(method.type)
      if (problem) problems.push({ path: where, problem: `has a type that ${problem}: @Process(${show(method.type)})` })
      problems.push(...wrongOptions(where, method.process, methodRules))
      continue
    }
    for (const type of method.types.filter((each) => !eventTypes.includes(each))) {
      const problem = `waits for ${show(type)}, which is no event${didYouMean(String(type), eventTypes)}`
      problems.push({ path: where, problem })
    }
  }
  return problems
}

function wrongOptions(path: string, options: unknown, rules: Parameters<typeof checkOptions>[2]): OptionProblem[] {
  try {
    checkOptions(path, options, rules)
    return []
  } catch (error) {
    if (!(error instanceof InvalidOptionsError)) throw error
    return error.problems.map((each) => ({ path, problem: `has a wrong option: ${each.path} ${each.problem}` }))
  }
}

/** Wrong only beside each other. */
export function problemsTogether(processors: readonly Placed[]): OptionProblem[] {
  const problems: OptionProblem[] = []
  const byType = new Map<string, Placed>()
  const byQueue = new Map<string, Placed>()
  for (const processor of processors) {
    const { queue, type, where, options } = processor
    const first = byType.get(JSON.stringify([queue, type]))
    if (first) {
      const hint =
        first.where === where ? 'its class is provided by several modules: provide it in one' : 'leave one of them'
      problems.push({
        path: where,
        problem: `processes ${JSON.stringify(type)} of queue "${queue}", and so does ${first.where}; ${hint}`,
      })
    }
    byType.set(JSON.stringify([queue, type]), processor)
    const neighbour = byQueue.get(queue) ?? processor
    byQueue.set(queue, neighbour)
    if (String(neighbour.options.levels ?? '') === String(options.levels ?? '')) continue
    problems.push({
      path: where,
      problem: `serves other levels than ${neighbour.where}: the queue "${queue}" has one pool in a process, with one list of levels`,
    })
  }
  return [...problems, ...differingConcurrency(processors)]
}

/** Those that give none go along with whoever does. Each number is told once, whatever the number of its methods. */
function differingConcurrency(processors: readonly Placed[]): OptionProblem[] {
  const problems: OptionProblem[] = []
  const given = new Map<string, Map<number, string>>()
  for (const { queue, where, options } of processors) {
    if (options.concurrency === undefined) continue
    const known = given.get(queue) ?? new Map<number, string>()
    given.set(queue, known)
    const [first] = known
    if (first && !known.has(options.concurrency)) {
      problems.push({
        path: where,
        problem: `has a concurrency of ${options.concurrency}, and ${first[1]} one of ${first[0]}: the queue "${queue}" has one pool in a process, with one number. Give it to one class`,
      })
    }
    known.set(options.concurrency, known.get(options.concurrency) ?? where)
  }
  return problems
}
