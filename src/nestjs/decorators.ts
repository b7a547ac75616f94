import { Injectable, type Scope } from '@nestjs/common'
import type { QueueEvent } from '../engine/events.ts'
import type { Job } from '../engine/job.ts'
import type { JobContext } from '../engine/job-run.ts'
import type { ProcessOptions } from '../engine/queue-options.ts'
import { markClass, markMethod } from './marks.ts'

/** Options of `@Processor`: for all its methods, and for the pool of its queue in this process. */
export interface ProcessorOptions extends ProcessOptions {
  /**
   * `Scope.REQUEST` makes the class anew for each job, which it then gets with `@Inject(REQUEST)`.
   * @default one for all jobs
   */
  scope?: Scope.DEFAULT | Scope.REQUEST
}

/** Options of `@Process`: for jobs of this type. How many run at once is a matter of the class: the queue has one pool. */
export type ProcessMethodOptions = Omit<ProcessOptions, 'concurrency' | 'levels'>

/** Only fits a method that takes such a job. */
export type ProcessDecorator<Payload> = <Method extends (job: Job<Payload>, context: JobContext) => unknown>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<Method>,
) => void

/** Only fits a method that takes an event. */
export type EventDecorator = <Method extends (event: QueueEvent) => unknown>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<Method>,
) => void

/** A provider whose methods run the jobs of one queue: one for each type of job, marked with `@Process`. */
export function Processor(queue: string, options: ProcessorOptions = {}): ClassDecorator {
  const { scope, ...process } = options
  return (target) => {
    markClass(target, { decorator: 'Processor', queue, process })
    if (scope !== undefined) Injectable({ scope })(target)
  }
}

/**
 * Runs jobs of this type, as `queue.process` does: what the method returns or throws decides what becomes of the job.
 * `@Process<Promotion>('SEND')` makes the compiler check that the method takes such a payload.
 */
// biome-ignore lint/suspicious/noExplicitAny: without a word of the caller, the method says what its payload is.
export function Process<Payload = any>(type: string, options: ProcessMethodOptions = {}): ProcessDecorator<Payload> {
  return (target, key) => markMethod(target, { decorator: 'Process', key, type, process: options })
}

/** A provider that is told what happens in a queue, by methods marked with `@OnQueueEvent`. */
export function QueueEventsListener(queue: string): ClassDecorator {
  return (target) => markClass(target, { decorator: 'QueueEventsListener', queue })
}

/**
 * Called when this happens in the queue of the class, a `@QueueEventsListener` or a `@Processor`. Every process of the
 * application is told everything that happens after its start, whichever process it happens in.
 */
export function OnQueueEvent(type: QueueEvent['type'] | readonly QueueEvent['type'][]): EventDecorator {
  const types = typeof type === 'string' ? [type] : type
  return (target, key) => markMethod(target, { decorator: 'OnQueueEvent', key, types })
}
