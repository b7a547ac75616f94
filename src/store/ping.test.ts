import { expect, it } from 'vitest'
import { pingEach } from './ping.ts'

it('asks every server that has a part of the data', async () => {
  const asked: string[] = []
  const callEach = async (command: string) => {
    asked.push(command)
    return ['PONG', 'PONG']
  }

  await pingEach({ callEach }, 10_000)

  expect(asked).toEqual(['PING'])
})

it('does not wait for one that does not answer', async () => {
  const never = () => new Promise<never>(() => {})

  await expect(pingEach({ callEach: never }, 10)).rejects.toMatchObject({
    code: 'SLUICE_STORE_UNAVAILABLE',
    reason: 'no answer within 10 ms',
  })
})
