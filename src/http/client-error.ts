import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { PROBLEM_TYPE, Problem } from './problem.ts'

/** What is no HTTP, has too many headers or sends them too slowly never becomes a request: it is answered on its socket. */
export function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  // Nobody is there to read it.
  if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) return
  const problem = problemOf(error.code)
  const body = JSON.stringify(problem.document())
  const head = [
    `HTTP/1.1 ${problem.statusCode} ${STATUS_CODES[problem.statusCode]}`,
    `Content-Type: ${PROBLEM_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
}

function problemOf(code: string | undefined): Problem {
  if (code === 'HPE_HEADER_OVERFLOW') return new Problem('headers-too-large', 'The headers have more than 16 KiB.')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new Problem('request-timeout', 'The headers did not arrive in time.')
  return new Problem('invalid-request', 'This is not a valid HTTP request.')
}
