/**
 * A place in the order of the dead letters, which is that of their deaths: at the one of this key that died then. It is found
 * though that letter is gone.
 */
export interface LetterPlace {
  /** µs since 1970. */
  readonly died: string
  /** '' stands before all that died then. */
  readonly jobKey: string
}

export const placePattern = /^(\d{1,16})\.([\w-]*)$/

/** A key holds the names of a lane and a tenant, escaped. */
export const LONGEST_PLACE = 7_000

/** The same as text that a shell and a URL take as it is: keys hold names of tenants and lanes. */
export function encodePlace({ died, jobKey }: LetterPlace): string {
  return `${died}.${Buffer.from(jobKey).toString('base64url')}`
}

/** Undefined for a text that is no place. */
export function decodePlace(text: string): LetterPlace | undefined {
  const [, died, key] = placePattern.exec(text) ?? []
  if (died === undefined || key === undefined) return undefined
  return { died, jobKey: Buffer.from(key, 'base64url').toString() }
}
