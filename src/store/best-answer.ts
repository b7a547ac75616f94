import { StoreUnavailableError } from '../errors.ts'

// What the others may take once the first has answered: those that know the newest are among the quick ones.
const GRACE_MS = 300

/**
 * As soon as there are `enough` answers, or those that are there shortly after the first: nobody waits for one that hangs.
 * Rejects with what the last one said when all fail.
 */
export function answersOf<T>(asked: readonly Promise<T>[], options: { enough: number }): Promise<[T, ...T[]]> {
  const answers: T[] = []
  let open = asked.length
  let timer: NodeJS.Timeout | undefined
  return new Promise<[T, ...T[]]>((resolve, reject) => {
    const answer = () => resolve([...answers] as [T, ...T[]])
    const settle = (error?: Error) => {
      open -= 1
      if (answers.length >= options.enough || (open === 0 && answers.length > 0)) answer()
      else if (open === 0) reject(error)
      else if (answers.length > 0) timer ??= setTimeout(answer, GRACE_MS)
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
