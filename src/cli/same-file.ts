import { stat } from 'node:fs/promises'
import { CliError } from './cli-error.ts'

/** Refuses to write over what is read, whatever it is called: `./calls.ndjson`, a link, another spelling. */
export async function assertOtherFile(
  option: string,
  { input, output }: { input: string; output: string },
): Promise<void> {
  const [read, written] = await Promise.all([identityOf(input), identityOf(output)])
  if (read === undefined || read !== written) return
  throw new CliError('usage', `${option} ${output} is ${input} itself and would replace it: name another file`)
}

/** Undefined for a file that is not there: whoever needs it says so. */
async function identityOf(path: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await stat(path, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return undefined
  }
}
