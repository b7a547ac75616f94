import type { DiscoveryService } from '@nestjs/core'
import type { Job } from '../engine/job.ts'
import type { JobContext } from '../engine/job-run.ts'
import type { Queue } from '../engine/queue.ts'
import type { ProcessOptions } from '../engine/queue-options.ts'
import { InvalidOptionsError, type OptionProblem } from '../errors.ts'
import { closeAll } from './close-all.ts'
import { EventFollower } from './event-follower.ts'
import type { SluiceModuleOptions } from './module-options.ts'
import { type PlannedProcessor, type ProcessorPlan, planProcessors } from './processor-plan.ts'
import type { QueueRegistry } from './queue-registry.ts'
import { isOptionsToken, optionsToken } from './tokens.ts'

/** For an application that does not start. */
export let abandon: (registrar: SluiceRegistrar) => Promise<void>

/**
 * Tells the listeners of a configuration what happens from now on, whether this process runs jobs or not.
 * @param isAway - Redis has just been waited for in vain: nobody waits for it once more.
 */
export let listen: (registrar: SluiceRegistrar, configKey: string, options: { isAway: boolean }) => Promise<void>

/**
 * Gives the methods with `@Process` to their queues. The module does so by itself, unless `autoStart` is false: then
 * `register` starts the workers of this process, whenever the application is ready for them.
 */
export class SluiceRegistrar {
  readonly #discovery: DiscoveryService
  readonly #registry: QueueRegistry
  readonly #started = new Map<string, Queue>()
  readonly #followers = new Map<string, EventFollower>()
  #plan: ProcessorPlan | undefined
  #isStopped = false

  static {
    abandon = (registrar) => closeAll(registrar.#discovery)
    listen = (registrar, configKey, options) => registrar.#listen(configKey, options)
  }

  /** Made by `SluiceModule`. */
  constructor(discovery: DiscoveryService, registry: QueueRegistry) {
    this.#discovery = discovery
    this.#registry = registry
  }

  /**
   * Runs jobs in this process from now on, of all queues (or those of one configuration) that do not run yet. Throws an
   * InvalidOptionsError with all that is wrong with the decorators, before anything runs.
   */
  async register(configKey?: string): Promise<void> {
    const { processors } = this.check()
    if (this.#isStopped) return
    // Listeners first: they are told of what the first job does.
    await this.#listen(configKey, { isAway: false })
    for (const { name, key, queue } of this.#made(configKey)) {
      if (this.#isStopped || this.#started.has(name)) continue
      this.#started.set(name, queue)
      const defaults = this.#optionsOf(key)?.defaults?.process
      serve(
        queue,
        processors.filter((each) => each.queue === name),
        defaults,
      )
    }
  }

  async #listen(configKey: string | undefined, { isAway }: { isAway: boolean }): Promise<void> {
    const { listeners } = this.check()
    const started: Promise<void>[] = []
    for (const { name, queue } of this.#made(configKey)) {
      const told = listeners.filter((each) => each.queue === name)
      if (told.length === 0 || this.#followers.has(name) || this.#isStopped) continue
      const follower = new EventFollower(queue, told)
      this.#followers.set(name, follower)
      started.push(follower.start({ isAway }))
    }
    await Promise.all(started)
  }

  /** Queues that were really made, of one configuration or of all. */
  *#made(configKey: string | undefined): Generator<{ name: string; key: string; queue: Queue }> {
    for (const { name, configKey: key } of this.#registry.registrations()) {
      const queue = this.#registry.made.get(name)
      if (queue && (configKey === undefined || key === configKey)) yield { name, key, queue }
    }
  }

  /** Throws what is wrong with the modules and decorators of the application. */
  check(): ProcessorPlan {
    const registrations = this.#registry.registrations()
    this.#plan ??= planProcessors(
      this.#discovery,
      registrations.map(({ name }) => name),
    )
    const problems = [...this.#problemsOfRoots(), ...this.#plan.problems]
    if (problems.length > 0) throw new InvalidOptionsError('the processors of this application', problems)
    return this.#plan
  }

  /** Each import of forRoot connects once more, and nobody could say whose Sluice is injected where. */
  #problemsOfRoots(): OptionProblem[] {
    const counts = new Map<string, number>()
    for (const { token } of this.#discovery.getProviders()) {
      if (isOptionsToken(token)) counts.set(token, (counts.get(token) ?? 0) + 1)
    }
    return [...counts.values()]
      .filter((count) => count > 1)
      .map((count) => ({
        path: 'SluiceModule.forRoot',
        problem: `is imported ${count} times: import it once, in the root module. Its Sluice is there for all modules`,
      }))
  }

  /** Lets running jobs end, within the grace of their queue. Submitting goes on. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all([...this.#started.values()].map((queue) => queue.stop()))
    await Promise.all([...this.#followers.values()].map((follower) => follower.stop()))
  }

  #optionsOf(configKey: string): SluiceModuleOptions | undefined {
    const token = optionsToken(configKey)
    return this.#discovery.getProviders().find((provider) => provider.token === token)?.instance
  }
}

function serve(queue: Queue, processors: readonly PlannedProcessor[], defaults: ProcessOptions | undefined): void {
  // What one class gives holds for the pool, and so for the others: they must not bring the default of the application.
  const concurrency = processors.map(({ options }) => options.concurrency).find((given) => given !== undefined)
  const shared = { ...defaults, ...(concurrency === undefined ? {} : { concurrency }) }
  for (const { type, call, options } of processors) {
    queue.process(type, (job: Job, context: JobContext) => call(job, context), { ...shared, ...options })
  }
}
