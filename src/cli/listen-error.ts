import { CliError } from './cli-error.ts'

/**
 * Why nothing can listen at an address, with what to do where that is the caller's matter; anything else as it was.
 * @param error - Of `listen`.
 */
export function listenError(error: unknown, { host, port }: { host: string; port: number }): unknown {
  const problem = problemOf((error as NodeJS.ErrnoException).code, host, port)
  return problem === undefined ? error : new CliError('usage', problem, { cause: error })
}

function problemOf(code: string | undefined, host: string, port: number): string | undefined {
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} is taken; choose another with --port, or 0 for a free one`
    case 'EACCES':
      return `port ${port} may not be used by this user; choose one from 1024 on with --port`
    case 'EADDRNOTAVAIL':
      return `${host} is no address of this machine; name one that is with --host`
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `the host ${host} is not known here; name another with --host`
    default:
      return undefined
  }
}
