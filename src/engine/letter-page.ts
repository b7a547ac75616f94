import { decodePlace, encodePlace } from '../store/letter-place.ts'
import { type FoundLetters, readDeadLetters } from '../store/scripts/read-dead-letters.ts'
import { type DeadLetter, toLetter } from './dead-letters.ts'
import { insideOf, type Queue } from './queue.ts'

const AT_ONCE = 500

/** Undefined `cursor`: there are no more. */
export interface LetterPage {
  readonly letters: DeadLetter[]
  /** How many were looked at to find these. */
  readonly looked: number
  readonly total: number
  readonly cursor: string | undefined
}

/**
 * Dead letters that fit, newest first, `limit` at most, for callers between whose requests nothing is kept. It looks at no more
 * than `mostLooked`, and a page of large ones is short.
 */
export async function letterPage(
  queue: Queue,
  page: { cursor?: string | undefined; limit: number; mostLooked: number },
  fits?: (letter: DeadLetter) => boolean,
): Promise<LetterPage> {
  const { redis, keys, registration } = insideOf(queue)
  await registration.readable()
  const letters: DeadLetter[] = []
  let after = decodePlace(page.cursor ?? '')
  for (let looked = 0; ; ) {
    const count = Math.min(fits ? AT_ONCE : page.limit - letters.length, page.mostLooked - looked)
    const { rows, total, isMore }: FoundLetters = await readDeadLetters(redis, keys, { after, count })
    let at = 0
    for (; at < rows.length && letters.length < page.limit; at++) {
      const row = rows[at]
      after = row?.place
      for (const letter of toLetter(row?.letter)) if (!fits || fits(letter)) letters.push(letter)
    }
    looked += at
    const hasNext = isMore || at < rows.length
    const isFull = letters.length >= page.limit || (letters.length > 0 && rows.length < count)
    if (!hasNext || isFull || looked >= page.mostLooked) {
      return { letters, looked, total, cursor: hasNext && after ? encodePlace(after) : undefined }
    }
  }
}
