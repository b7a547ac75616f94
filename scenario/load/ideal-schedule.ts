/** A job as a scheduler sees it; instants in milliseconds of one clock. */
export interface ScheduledJob {
  readonly tenant: string
  /** When it came. */
  readonly at: number
}

interface Coming extends ScheduledJob {
  /** In the list that was given. */
  readonly position: number
}

interface Line {
  readonly jobs: Coming[]
  /** How many of them have started. */
  started: number
  /** The virtual instant at which its next job would begin if the tenant had its share for itself. */
  virtualStart: number
}

/**
 * When an ideal weighted max-min scheduler would have started each job, given the same opportunities: `slots` are the
 * instants at which a hand was free and a limit granted, taken from the run that it is held against. So its throughput is
 * that of the run, and a slow minute of the machine falls on both alike.
 *
 * It gives each slot to the tenant that is furthest behind its share (start-time fair queueing): of all schedulers that
 * cannot divide a slot and do not know the future, none is nearer to the fluid ideal by more than a slot for each tenant.
 * A slot when nobody has work is lost. Undefined for jobs that the slots were not enough for.
 */
export function idealStarts(
  jobs: readonly ScheduledJob[],
  slots: readonly number[],
  weights: Readonly<Record<string, number>> = {},
): (number | undefined)[] {
  const coming = jobs.map((job, position): Coming => ({ ...job, position })).sort((a, b) => a.at - b.at)
  const lines = new Map<string, Line>()
  const starts: (number | undefined)[] = jobs.map(() => undefined)
  let next = 0
  let virtualNow = 0
  for (const slot of slots.toSorted((a, b) => a - b)) {
    for (let job = coming[next]; job !== undefined && job.at <= slot; job = coming[++next]) {
      enter(lines, job, virtualNow)
    }
    const chosen = furthestBehind(lines)
    if (chosen === undefined) continue
    const { job, line } = chosen
    starts[job.position] = slot
    virtualNow = line.virtualStart
    line.started += 1
    line.virtualStart += 1 / (weights[job.tenant] ?? 1)
  }
  return starts
}

/** A tenant that comes back starts now: idling has earned it nothing, and what it has used up it has used up. */
function enter(lines: Map<string, Line>, job: Coming, virtualNow: number): void {
  const line = lines.get(job.tenant) ?? { jobs: [], started: 0, virtualStart: virtualNow }
  lines.set(job.tenant, line)
  if (line.started === line.jobs.length) line.virtualStart = Math.max(line.virtualStart, virtualNow)
  line.jobs.push(job)
}

/** The tenant with the least of its share; of equals, the one whose job came first. */
function furthestBehind(lines: ReadonlyMap<string, Line>): { job: Coming; line: Line } | undefined {
  let best: { job: Coming; line: Line } | undefined
  for (const line of lines.values()) {
    const job = line.jobs[line.started]
    if (job === undefined) continue
    const isBehind =
      best === undefined ||
      line.virtualStart < best.line.virtualStart ||
      (line.virtualStart === best.line.virtualStart && job.at < best.job.at)
    if (isBehind) best = { job, line }
  }
  return best
}
