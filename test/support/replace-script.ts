import { createHash } from 'node:crypto'

/** Gives a built script another text, for this process. Its text is made when it is asked for: it cannot be assigned to. */
export function replaceScript(script: object, source: string): void {
  const sha = createHash('sha1').update(source).digest('hex')
  Object.defineProperties(script, {
    source: { value: source, configurable: true },
    sha: { value: sha, configurable: true },
  })
}
