import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, it } from 'vitest'
import { CliProcess, sluice } from './cli-process.ts'

it('sluice demo --only-upstream answers until Ctrl-C, and then says what it saw', async () => {
  const cli = new CliProcess(['demo', '--only-upstream', '--limit', '2', '--json'])
  const [url] = await cli.said(/http:\/\/127\.0\.0\.1:\d+/)

  const statuses = []
  for (const path of ['/a', '/b', '/c']) statuses.push((await fetch(url + path)).status)
  cli.signal('SIGINT')
  const { code, stdout } = await cli.ended()

  expect(statuses).toEqual([200, 200, 429])
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({ calls: 3, violations: 1, busiest: 3 })
})

it('sluice demo --only-upstream ends with 2 where the port is taken', async () => {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo

  const end = await sluice(['demo', '--only-upstream', '--port', String(port)])
  server.close()

  expect(end).toMatchObject({
    code: 2,
    stderr: `sluice: port ${port} is taken; choose another with --port, or 0 for a free one\n`,
  })
})
