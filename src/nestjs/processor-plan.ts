import type { DiscoveryService } from '@nestjs/core'
import type { QueueEvent } from '../engine/events.ts'
import type { OptionProblem } from '../errors.ts'
import { type ClassMark, classMarksOf, type MethodMark, methodMarksOf } from './marks.ts'
import { type Placed, problemOfClass, problemsOfMarks, problemsTogether } from './processor-problems.ts'
import { type Call, callOf, type Provider } from './provider-call.ts'

/** A method that runs jobs of one type. */
export interface PlannedProcessor extends Placed {
  readonly call: Call
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
    if (problem) {
      plan.problems.push({ path: type.name, problem })
      continue
    }
    const mark = classMarks[0] as ClassMark
    plan.problems.push(...problemsOfMarks(type.name, mark, methodMarks))
    for (const method of methodMarks) addTo(plan, provider, mark, method, type.name)
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
    // What is a matter of the class is refused where a method gives it, and not compared with others besides.
    const { concurrency: _, levels: __, ...own } = method.process
    plan.processors.push({ ...shared, type: method.type, options: { ...mark.process, ...own } })
  }
}
