import { expect, it } from 'vitest'
import { listenError } from './listen-error.ts'

const failed = (code: string) => Object.assign(new Error(`listen ${code}`), { code })
const at = { host: 'api.local', port: 80 }

it.each([
  ['EADDRINUSE', /^port 80 is taken; choose another with --port/],
  ['EACCES', /^port 80 may not be used by this user; choose one from 1024 on with --port$/],
  ['EADDRNOTAVAIL', /^api\.local is no address of this machine; .* --host$/],
  ['ENOTFOUND', /^the host api\.local is not known here; .* --host$/],
])('says what to do about %s', (code, message) => {
  expect(listenError(failed(code), at)).toMatchObject({ exit: 'usage', message: expect.stringMatching(message) })
})

it('leaves other errors as they are', () => {
  const error = failed('EMFILE')

  expect(listenError(error, at)).toBe(error)
})
