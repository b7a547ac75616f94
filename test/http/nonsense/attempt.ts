export interface Attempt {
  /** What is wrong with it. */
  readonly what: string
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** The statuses that fit. */
  readonly expected: readonly number[]
}

/** The same for two attempts that send the same. */
export function identityOf({ method, path, headers, body }: Attempt): string {
  return JSON.stringify([method, path, headers, body])
}

/** What an attempt is made of by spoiling it. */
export interface Right {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

/** Where things are that the caller of `nonsenseFor` has made, by the name of the parameter. */
export type Places = Readonly<Record<string, string>>
