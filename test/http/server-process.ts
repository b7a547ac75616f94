/**
 * A server in a process of its own, whose memory is nobody else's: `server-process.ts <socket of Redis> <prefix>`. Prints where
 * it listens; answers every line on its standard input with the bytes that are alive in it.
 */
import { createInterface } from 'node:readline'
import { createServer } from '../../src/http/index.ts'
import { Sluice } from '../../src/index.ts'

const [path = '', prefix = ''] = process.argv.slice(2)
const sluice = new Sluice({ redis: { path }, prefix })
const app = createServer({ sluice, queues: { mail: sluice.queue('mail') } })
process.stdout.write(`${await app.listen({ host: '127.0.0.1', port: 0 })}\n`)

for await (const _ of createInterface({ input: process.stdin })) {
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  process.stdout.write(`${heapUsed + external}\n`)
}
await app.close()
await sluice.close()
