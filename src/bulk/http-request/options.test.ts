import { expect, it } from 'vitest'
import { InvalidOptionsError } from '../../errors.ts'
import { checkHttpRequestOptions, type HttpRequestOptions } from './options.ts'

function problemsOf(options: unknown): string[] {
  try {
    checkHttpRequestOptions(options as HttpRequestOptions)
  } catch (error) {
    if (error instanceof InvalidOptionsError) return error.problems.map(({ path, problem }) => `${path} ${problem}`)
    throw error
  }
  return []
}

it('needs allowHosts and nothing else', () => {
  expect(problemsOf({})).toEqual(['allowHosts is required'])
  expect(problemsOf(undefined)).toEqual(['allowHosts is required'])
  expect(problemsOf({ allowHosts: [] })).toEqual([])
})

it('names every wrong entry of a list by its place', () => {
  expect(problemsOf({ allowHosts: ['a.test', 'https://b.test', 5], allowPrivate: ['10.0.0.0/99'] })).toEqual([
    expect.stringContaining('allowHosts[1] must be a host such as'),
    'allowHosts[2] must be text, not 5',
    expect.stringContaining('allowPrivate[0] must be an address or a range'),
  ])
})

it('refuses what is no list, wrong bounds, and names it does not know', () => {
  expect(problemsOf({ allowHosts: 'a.test', maxRedirects: -1, userAgent: 'a\r\nb', timeoutMS: 5 })).toEqual([
    'allowHosts must be an array, not "a.test"',
    'maxRedirects must be a whole number from 0 to 20, not -1',
    'userAgent must be printable ASCII, not "a\\r\\nb"',
    'timeoutMS is not an option; did you mean "timeoutMs"?',
  ])
})

it('resolves names as the system does unless told otherwise', async () => {
  const { resolve } = checkHttpRequestOptions({ allowHosts: [] })

  expect(await resolve('127.0.0.1')).toEqual(['127.0.0.1'])
})
