import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { CliProcess } from './cli-process.ts'
import { folderWith, removeFolder } from './server-process.ts'

const job = '{"payload":{}}\n'

/** A server that takes an upload and never answers. */
async function silentServer(): Promise<{ url: string; asked: Promise<IncomingMessage> }> {
  const server = createServer((request) => request.resume())
  const asked = once(server, 'request').then(([request]) => request as IncomingMessage)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

describe('sluice submit that is interrupted', () => {
  it.each([
    { from: 'a file', path: 'jobs.ndjson', keepsInputOpen: false },
    { from: 'standard input that goes on', path: '-', keepsInputOpen: true },
  ])('says under which name to go on with $from', async ({ path, keepsInputOpen }) => {
    const folder = folderWith({ 'jobs.ndjson': job.repeat(3) })
    onTestFinished(() => removeFolder(folder))
    const { url, asked } = await silentServer()

    const cli = new CliProcess(['submit', path, '-t', 'acme', '--url', url], {
      cwd: folder,
      input: job.repeat(10_000),
      keepsInputOpen,
    })
    const { headers } = await asked
    cli.signal('SIGINT')
    const { code, stdout, stderr } = await cli.ended()

    const name = JSON.parse(String(headers['idempotency-key'])) as string
    expect({ code, stdout }).toEqual({ code: 130, stdout: '' })
    expect(stderr).toBe(`sluice: not all jobs were submitted; to go on, submit the same jobs with --action ${name}\n`)
  })
})
