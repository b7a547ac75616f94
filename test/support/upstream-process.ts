/**
 * The upstream that limits protect, in a process of its own: it stamps each call when it arrives and answers after
 * the time the call asks for. Run by `Upstream.start`; ends with the process that started it.
 */
import { createServer, type Socket } from 'node:net'
import { goFirst } from '../../src/testing/go-first.ts'
import { busiestWindow, mostAtOnce, usedShare } from './arrivals.ts'
import type { Arrival, UpstreamQuestion, UpstreamReport } from './upstream.ts'

const arrivals: Arrival[] = []

// A recorder that waits for a processor would stamp calls late and together, and accuse the limit wrongly.
goFirst()

const server = createServer({ noDelay: true }, (socket) => {
  let rest = ''
  socket.setEncoding('utf8')
  socket.on('error', () => {})
  socket.on('data', (text: string) => {
    const at = Number(process.hrtime.bigint()) / 1e6
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) receive(socket, line, at)
  })
})

/** A line is: number of the call, how long to hold it, job, tenant, fence; separated by tabs. */
function receive(socket: Socket, line: string, at: number): void {
  const [call, hold, job = '', tenant = '', fence = ''] = line.split('\t')
  const holdMs = Number(hold)
  const arrival: Arrival = { at, until: at, job, tenant, fence }
  arrivals.push(arrival)
  const answer = () => {
    arrival.until = Number(process.hrtime.bigint()) / 1e6
    if (socket.writable) socket.write(`${call}\n`)
  }
  if (holdMs > 0) setTimeout(answer, holdMs)
  else answer()
}

function report({ permits, windowMs }: { permits: number; windowMs: number }): UpstreamReport {
  const times = arrivals.map(({ at }) => at)
  const byTenant: Record<string, number[]> = {}
  for (const { at, tenant } of arrivals) {
    byTenant[tenant] ??= []
    byTenant[tenant].push(at)
  }
  return {
    total: arrivals.length,
    busiest: busiestWindow(times, windowMs),
    busiestByTenant: Object.fromEntries(
      Object.entries(byTenant).map(([tenant, own]) => [tenant, busiestWindow(own, windowMs).count]),
    ),
    mostAtOnce: mostAtOnce(arrivals.map(({ at, until }) => ({ from: at, to: until }))).count,
    usedShare: usedShare(times, { permits, windowMs }),
  }
}

process.on('message', (question: UpstreamQuestion) => {
  switch (question.ask) {
    case 'report':
      process.send?.(report(question))
      break
    case 'total':
      process.send?.(arrivals.length)
      break
    case 'arrivals':
      process.send?.(arrivals)
      break
    case 'forget':
      arrivals.length = 0
      process.send?.('forgotten')
      break
  }
})
process.on('disconnect', () => process.exit())

server.listen(0, '127.0.0.1', () => process.send?.(server.address()))
