import type { Figures, Outcome } from './scenario.ts'

export interface Bound {
  readonly atLeast?: number
  readonly atMost?: number
}

/** Holds figures against what they must reach. A bound on a figure that is missing or not a number is broken. */
export function judge(figures: Figures, bounds: Readonly<Record<string, Bound>>): Outcome {
  const broken = Object.entries(bounds).flatMap(([name, bound]) => problemsOf(name, figures[name], bound))
  return { pass: broken.length === 0, figures, broken }
}

function problemsOf(name: string, figure: number | undefined, { atLeast, atMost }: Bound): string[] {
  const problems: string[] = []
  // Written so that NaN and undefined satisfy nothing.
  if (atLeast !== undefined && !(figure !== undefined && figure >= atLeast)) problems.push(`at least ${atLeast}`)
  if (atMost !== undefined && !(figure !== undefined && figure <= atMost)) problems.push(`at most ${atMost}`)
  return problems.map((problem) => `${name} is ${figure}, must be ${problem}`)
}
