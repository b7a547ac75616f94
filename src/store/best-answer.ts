import { StoreUnavailableError } from '../errors.ts'

// What the others may take once the first has answered: those that know the newest are among the quick ones.
const GRACE_MS = 300

/**
 * The newest of `enough` answers, or of those that are there shortly after the first: one that hangs, or has not heard
 * the news yet, decides nothing. Rejects with what the last one said when all fail.
 */
export function newestAnswer<T>(
  asked: readonly Promise<T>[],
  options: { enough: number; epochOf: (answer: T) => number },
): Promise<T> {
  const answers: T[] = []
  let open = asked.length
  let timer: NodeJS.Timeout | undefined
  return new Promise<T>((resolve, reject) => {
    const newest = () => answers.reduce((a, b) => (options.epochOf(b) > options.epochOf(a) ? b : a))
    const settle = (error?: Error) => {
      open -= 1
      if (answers.length >= options.enough || (open === 0 && answers.length > 0)) resolve(newest())
      else if (open === 0) reject(error)
      else if (answers.length > 0) timer ??= setTimeout(() => resolve(newest()), GRACE_MS)
    }
    if (open === 0) reject(new StoreUnavailableError({ reason: 'there is nobody to ask', outcome: 'not-sent' }))
    for (const each of asked) {
      each.then(
        (answer) => {
          answers.push(answer)
          settle()
        },
        (error: Error) => settle(error),
      )
    }
  }).finally(() => clearTimeout(timer))
}
