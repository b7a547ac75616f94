import { isSluiceError } from '../errors.ts'
import { type ExitName, exitCodes, exitOfSluiceError } from './exit-codes.ts'

/** An error a person is told in one line: what happened, and what to do. */
export class CliError extends Error {
  readonly exit: ExitName
  /** Further members of the problem document that `--json` prints. */
  readonly details: Readonly<Record<string, unknown>>

  constructor(
    exit: ExitName,
    message: string,
    options: { cause?: unknown; details?: Readonly<Record<string, unknown>> } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'CliError'
    this.exit = exit
    this.details = options.details ?? {}
  }
}

/** Anything that was thrown, as what a person is told. */
export function toCliError(error: unknown): CliError {
  if (error instanceof CliError) return error
  if (isSluiceError(error)) {
    const details = { code: error.code, ...('problems' in error ? { errors: error.problems } : {}) }
    return new CliError(exitOfSluiceError(error.code), error.message, { cause: error, details })
  }
  const message = error instanceof Error ? error.message : String(error)
  return new CliError('unexpected', `${message} (unexpected: run it again with --debug for the stack)`, {
    cause: error,
  })
}

/** An RFC 9457 problem document, as `--json` prints it on standard error. */
export function problemOf(error: CliError): Record<string, unknown> {
  return {
    type: 'about:blank',
    title: exitCodes[error.exit].meaning,
    detail: error.message,
    ...error.details,
    exitCode: exitCodes[error.exit].code,
  }
}
