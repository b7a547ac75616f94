import { expect, it } from 'vitest'
import { ProxiedQueue } from './proxied-queue.ts'

it('a proxied queue that cannot start ends the servers it has started', async () => {
  const before = processesAndServers()

  await expect(ProxiedQueue.start('q', { leaseMs: -1 })).rejects.toThrow('leaseMs')

  expect(processesAndServers()).toEqual(before)
})

function processesAndServers(): string[] {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'ProcessWrap' || kind === 'TCPServerWrap')
}
