import { expect, it } from 'vitest'
import { errorCodes } from '../../src/errors.ts'
import { listedNames } from './markdown.ts'

it('docs/errors.md lists every error code, each once, and no other', () => {
  expect(listedNames('docs/errors.md')).toEqual(Object.keys(errorCodes).sort())
})
