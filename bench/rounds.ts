export function median(values: readonly number[]): number {
  if (values.length === 0) throw new Error('no values to take a median of')
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] as number
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] as number) + upper) / 2
}

/**
 * Runs the sides in turn, round after round, so that a slow minute of the machine falls on all of them, and gives the
 * median of each figure of each side. `warmUps` rounds come first and are thrown away: compiled code, loaded scripts.
 */
export async function alternate<Side extends string, Figure extends string>(
  sides: readonly Side[],
  { rounds, warmUps }: { rounds: number; warmUps: number },
  run: (side: Side, round: { warmUp: boolean }) => Promise<Record<Figure, number>>,
): Promise<Record<Side, Record<Figure, number>>> {
  const seen = new Map<Side, Record<Figure, number>[]>(sides.map((side) => [side, []]))
  for (let round = -warmUps; round < rounds; round++) {
    for (const side of sides) {
      const figures = await run(side, { warmUp: round < 0 })
      if (round >= 0) seen.get(side)?.push(figures)
    }
  }
  return Object.fromEntries([...seen].map(([side, figures]) => [side, medians(figures)])) as Record<
    Side,
    Record<Figure, number>
  >
}

function medians<Figure extends string>(rounds: readonly Record<Figure, number>[]): Record<Figure, number> {
  const names = Object.keys(rounds[0] ?? {}) as Figure[]
  return Object.fromEntries(names.map((name) => [name, median(rounds.map((round) => round[name]))])) as Record<
    Figure,
    number
  >
}
