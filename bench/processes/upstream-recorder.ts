import { createServer } from 'node:net'
import { parentPort } from './child.ts'
import type { FromUpstream, ToUpstream } from './messages.ts'

/**
 * The rate-limited API, in a process of its own: it notes when each call arrives. Raw TCP, so that it is never the
 * slow part. The first byte of a connection names the channel under which its calls are counted; every further byte
 * is a call, answered by a byte.
 */
const parent = parentPort<ToUpstream, FromUpstream>()
const arrivals = new Map<number, number[]>()

const server = createServer((socket) => {
  let channel: number | undefined
  socket.setNoDelay(true)
  socket.on('error', () => {})
  socket.on('data', (bytes) => {
    const now = performance.now()
    let calls = bytes.length
    if (channel === undefined) {
      channel = bytes[0] as number
      calls--
    }
    const noted = arrivals.get(channel) ?? []
    arrivals.set(channel, noted)
    for (let call = 0; call < calls; call++) noted.push(now)
    if (calls > 0) socket.write(bytes.subarray(0, calls))
  })
})

parent.onMessage(({ channel }) => {
  parent.send({ kind: 'report', channel, arrivalsMs: arrivals.get(channel) ?? [], nowMs: performance.now() })
})

server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  parent.send({ kind: 'ready', port: address.port })
})
