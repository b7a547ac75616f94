import { Scope } from '@nestjs/common'
import type { DiscoveryService } from '@nestjs/core'
import { didYouMean } from '../assert.ts'
import type { QueueEvent } from '../engine/events.ts'
import type { ProcessOptions } from '../engine/queue-options.ts'
import type { OptionProblem } from '../errors.ts'
import { type ClassMark, classMarksOf, type MethodMark, methodMarksOf } from './marks.ts'
import { type Call, callOf, isPerJob, type Provider } from './provider-call.ts'

/** A method that runs jobs of one type. */
export interface PlannedProcessor {
  readonly queue: string
  readonly type: string
  /** `PromotionsProcessor.send`, for messages. */
  readonly where: string
  readonly call: Call
  readonly options: ProcessOptions
}

/** A method that is told of events. */
export interface PlannedListener {
  readonly queue: string
  readonly types: readonly QueueEvent['type'][]
  readonly where: string
  readonly call: Call
}

/** What the decorators of an application ask for, and everything that is wrong with it. */
export interface ProcessorPlan {
  readonly processors: readonly PlannedProcessor[]
  readonly listeners: readonly PlannedListener[]
  readonly problems: readonly OptionProblem[]
}

/** @param queues - The names that modules have registered. */
export function planProcessors(discovery: DiscoveryService, queues: readonly string[]): ProcessorPlan {
  const plan = {
    processors: [] as PlannedProcessor[],
    listeners: [] as PlannedListener[],
    problems: [] as OptionProblem[],
  }
  for (const provider of discovery.getProviders()) {
    const type = classOf(provider)
    if (!type || provider.isAlias) continue
    const [classMarks, methodMarks] = [classMarksOf(type), methodMarksOf(type)]
    if (classMarks.length === 0 && methodMarks.length === 0) continue
    const problem = problemOfClass(provider, classMarks, methodMarks, queues)
    if (problem) plan.problems.push({ path: type.name, problem })
    else for (const mark of methodMarks) addTo(plan, provider, classMarks[0] as ClassMark, mark, type.name)
  }
  plan.problems.push(...problemsTogether(plan.processors))
  return plan
}

/** Undefined: nothing that could have decorators. */
function classOf(provider: Provider): { name: string; prototype?: object } | undefined {
  const found: unknown =
    provider.metatype && !provider.inject ? provider.metatype : (provider.instance as object | undefined)?.constructor
  return typeof found === 'function' ? (found as { name: string; prototype?: object }) : undefined
}

function addTo(
  plan: { processors: PlannedProcessor[]; listeners: PlannedListener[] },
  provider: Provider,
  mark: ClassMark,
  method: MethodMark,
  className: string,
): void {
  const shared = { queue: mark.queue, where: `${className}.${String(method.key)}`, call: callOf(provider, method.key) }
  if (method.decorator === 'OnQueueEvent') plan.listeners.push({ ...shared, types: method.types })
  else if (mark.decorator === 'Processor') {
    plan.processors.push({ ...shared, type: method.type, options: { ...mark.process, ...method.process } })
  }
}

function problemOfClass(
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

/** Wrong only beside each other. */
function problemsTogether(processors: readonly PlannedProcessor[]): OptionProblem[] {
  const problems: OptionProblem[] = []
  const byType = new Map<string, PlannedProcessor>()
  const byQueue = new Map<string, PlannedProcessor>()
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
  return problems
}
