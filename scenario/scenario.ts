/** What a scenario measured, under the names of the JSON line. */
export type Figures = Readonly<Record<string, number>>

export interface Outcome {
  readonly pass: boolean
  readonly figures: Figures
  /** What did not hold, a sentence each. */
  readonly broken?: readonly string[]
}

export interface ScenarioContext {
  /** The sizes of the promise. Otherwise a short form of the same: the same figures and bounds, less load and time. */
  readonly full: boolean
  /** Aborts when the time is over or the run is interrupted. Whatever waits should wait with it. */
  readonly signal: AbortSignal
  /** A line for whoever watches; never part of the result. */
  readonly log: (line: string) => void
  /**
   * Ends what the scenario has started: servers, processes, connections. Called whatever happens, a time-out included,
   * in the reverse order of these calls; so tell it right after starting something.
   */
  readonly onEnd: (stop: () => unknown) => void
}

/**
 * One promise of the project, shown by real processes against real servers. It lives in `scenario/<group>/<name>.ts` and
 * starts its own servers. One that throws has failed, with its message.
 */
export interface Scenario {
  /** That of its file; what `--only` takes. */
  readonly name: string
  /** One line: what is promised. */
  readonly description: string
  /** After which it has failed. @default two minutes; fifteen when full */
  readonly timeLimitMs?: { readonly short: number; readonly full: number }
  run(context: ScenarioContext): Promise<Outcome>
}
