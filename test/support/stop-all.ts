/**
 * Ends what a test has started, stage after stage: each begins when all of the stage before has ended, and also when some of that
 * could not be ended, so that nothing stays behind. Then throws what went wrong.
 */
export async function stopAll(...stages: readonly (() => readonly (Promise<unknown> | undefined)[])[]): Promise<void> {
  const errors: unknown[] = []
  for (const begin of stages) {
    const ends = await Promise.allSettled(begin())
    for (const end of ends) if (end.status === 'rejected') errors.push(end.reason)
  }
  if (errors.length > 1) throw new AggregateError(errors, errors.map(String).join('; '))
  if (errors.length === 1) throw errors[0]
}
