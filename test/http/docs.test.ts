import { expect, it } from 'vitest'
import { problemKinds } from '../../src/http/problem.ts'
import { roles } from '../../src/http/roles.ts'
import { checkServerOptions } from '../../src/http/server-options.ts'
import { codeIn, codeRows, read } from '../docs/markdown.ts'
import { literalValue } from '../docs/option-tables.ts'
import { useHttpServer } from './http-server.ts'

const server = useHttpServer()

function rowsUnder(title: string): string[][] {
  return codeRows(read('docs/http.md'))
    .filter(({ heading }) => heading === title)
    .map(({ cells }) => [codeIn(cells[0]), cells[1] ?? ''])
}

it('docs/http.md lists every kind of problem with its status, and no other', () => {
  const listed = Object.fromEntries(rowsUnder('What goes wrong').map(([kind, status]) => [kind, Number(status)]))

  expect(listed).toEqual(Object.fromEntries(Object.entries(problemKinds).map(([kind, { status }]) => [kind, status])))
})

it('docs/http.md lists every role, and no other', () => {
  expect(rowsUnder('Keys and roles').map(([role]) => role)).toEqual([...roles])
})

it('docs/http.md lists every option with its default, and no other', () => {
  const { sluice } = server
  const settings = checkServerOptions({ sluice, queues: { mail: server.mail } })
  const isPlain = (value: unknown) => ['number', 'boolean', 'string'].includes(typeof value)

  const listed = rowsUnder('Options').map(([name, value]) => [name, literalValue(codeIn(value))])

  expect(Object.fromEntries(listed)).toEqual(
    Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, isPlain(value) ? value : undefined])),
  )
})
