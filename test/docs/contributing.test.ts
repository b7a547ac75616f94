import { expect, it } from 'vitest'
import { tools } from '../../scripts/tools.mjs'
import { read } from './markdown.ts'

it('CONTRIBUTING.md names every program that the set-up installs, and no other', () => {
  const [, sentence = ''] = /on Debian as root also\s+([^.]*)\./.exec(read('CONTRIBUTING.md')) ?? []
  const named = [...sentence.matchAll(/`([^`]+)`/g)].map(([, name]) => name)

  expect(named).toEqual(tools.map(({ name }) => name))
})
