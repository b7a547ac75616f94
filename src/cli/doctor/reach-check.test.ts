import { expect, it } from 'vitest'
import { StoreUnavailableError } from '../../errors.ts'
import { checkServer } from '../../store/server-info.ts'
import { fixOf } from './reach-check.ts'

const usable = { redis_version: '7.0.15', maxmemory_policy: 'noeviction', role: 'master', loading: '0' }

/** Why a server that says this of itself is not used. */
function refusalOf(changes: Readonly<Record<string, string>>): unknown {
  const reply = Object.entries({ ...usable, ...changes }).map(([name, value]) => `${name}:${value}\r\n`)
  try {
    return checkServer(reply.join(''), { allowEviction: true })
  } catch (error) {
    return error
  }
}

it.each([
  [{ redis_version: '6.2.14' }, /use Redis 7\.0 or newer/],
  [{ loading: '1' }, /wait until it has/],
  [{ role: 'slave' }, /name the master/],
])('of a server with %j it says what to do', (changes, fix) => {
  expect(fixOf(refusalOf(changes), 'redis://127.0.0.1:1')).toMatch(fix)
})

it('of one that does not answer it says to start it', () => {
  const error = new StoreUnavailableError({ reason: 'ECONNREFUSED', outcome: 'not-sent' })

  expect(fixOf(error, 'redis://127.0.0.1:1')).toMatch(/start it, or name another/)
})
