/**
 * The upstream itself, in a process of its own. `startUpstream` runs it, and it ends with the process that did.
 * Arguments: limit, windowMs, latencyMs, port.
 */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { goFirst } from './go-first.ts'
import { type UpstreamCall, UpstreamLedger } from './upstream-ledger.ts'

const [limit = 0, windowMs = 0, latencyMs = 0, port = 0] = process.argv.slice(2).map(Number)
let ledger = new UpstreamLedger({ limit, windowMs })

// One that waits for a processor would stamp calls late and together, and accuse the caller wrongly.
goFirst()

const now = () => Number(process.hrtime.bigint()) / 1e6

function answer(response: ServerResponse, call: UpstreamCall): void {
  call.answeredAt = now()
  const headers = { 'content-type': 'application/json' }
  if (call.status === 200) response.writeHead(200, headers).end('{"ok":true}\n')
  else {
    response
      .writeHead(429, { ...headers, 'retry-after': String(Math.ceil(windowMs / 1_000)) })
      .end('{"error":"too many calls"}\n')
  }
}

function report(response: ServerResponse, path: string): void {
  const { violations, calls } = ledger
  const counts = { calls: calls.length, violations, busiest: ledger.busiest(), limit, windowMs }
  const text = JSON.stringify(path === '/-/calls' ? calls : counts)
  response.writeHead(200, { 'content-type': 'application/json' }).end(`${text}\n`)
}

const server = createServer({ noDelay: true, keepAliveTimeout: 60_000 }, (request, response) => {
  const path = request.url ?? '/'
  // Bodies are taken and forgotten: a connection is free again only when they are read.
  request.resume()
  if (path === '/-/forget') ledger = new UpstreamLedger({ limit, windowMs })
  if (path.startsWith('/-/')) {
    report(response, path)
    return
  }
  const call = ledger.note(path, now())
  if (latencyMs > 0 && call.status === 200) setTimeout(answer, latencyMs, response, call)
  else answer(response, call)
})

process.on('disconnect', () => process.exit())
// Ctrl-C goes to every process of the terminal; this one ends with its parent, who may want its report first.
process.on('SIGINT', () => {})
server.on('error', (error: NodeJS.ErrnoException) => process.send?.({ error: error.message, code: error.code }))
server.listen(port, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
