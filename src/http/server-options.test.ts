import { afterAll, expect, it } from 'vitest'
import { Sluice } from '../sluice.ts'
import { checkServerOptions, type ServerOptions } from './server-options.ts'

const sluice = new Sluice({ redis: { path: '/nowhere' }, log: () => {} })
const mail = sluice.queue('mail')

afterAll(() => sluice.close())

it('takes a Sluice and some of its queues, and has a default for all else', () => {
  const settings = checkServerOptions({ sluice, queues: { mail } })

  expect([...settings.queues.keys()]).toEqual(['mail'])
  expect(settings).toMatchObject({ keys: [], maxBodyBytes: 1_048_576, rateLimit: undefined, trustProxy: false })
})

it.each<[string, object, string]>([
  ['no queue', { queues: {} }, 'queues must have at least one queue'],
  ['a queue under another name', { queues: { post: mail } }, 'queues.post must be the queue of this name, not mail'],
  ['something else for a Sluice', { sluice: {} }, 'sluice must be a Sluice'],
  ['keys that are no list', { keys: {} }, 'keys must be a list'],
  ['a log that cannot be written to', { log: { stream: {} } }, 'log.stream must be a writable stream'],
  ['a level that is none', { log: { stream: process.stderr, level: 'loud' } }, 'log.level must be'],
  ['a rate of nothing', { rateLimit: { max: 0, windowMs: 1_000 } }, 'rateLimit.max must be a whole number'],
  ['an option of the log nobody knows', { log: { stream: process.stderr, levle: 'info' } }, 'did you mean "level"'],
  ['a rate that says its window otherwise', { rateLimit: { max: 5, windowsMs: 1 } }, 'did you mean "windowMs"'],
  ['an option nobody knows', { maxBodyByte: 1 }, 'did you mean "maxBodyBytes"'],
])('refuses %s', (_, options, problem) => {
  expect(() => checkServerOptions({ sluice, queues: { mail }, ...options } as ServerOptions)).toThrow(problem)
})
