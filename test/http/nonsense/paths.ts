import { type Operation, pathOf } from '../operations.ts'
import type { Attempt, Places, Right } from './attempt.ts'
import { badEncodings } from './encodings.ts'

const badNames = [
  '%00',
  'a%00b',
  '%0a',
  'a%0d%0aX-Y:%20z',
  '%7f',
  '%1b[2J',
  'x'.repeat(300),
  '%F0%9F%92%A9'.repeat(300),
]
const strangers = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  '..',
  '.',
  '%2e%2e',
  '%2e%2e%2fadmin',
  '..%2f..%2fetc%2fpasswd',
  '%5c..%5c',
  'mail%00',
  'MAIL',
  'mail%20',
  '%20mail',
  'mail;x=1',
  'mail%2f',
  '*',
  '{queue}',
  ':queue',
  '%24%7b7*7%7d',
  "'%20OR%201=1--",
  '%3Cscript%3E',
  'null',
  'undefined',
  '0',
  '-1',
  'x'.repeat(2_000),
]

export function badPaths(operation: Operation, places: Places, right: Right): Attempt[] {
  const named = operation.parameters.filter(({ in: place }) => place === 'path').map(({ name }) => name)
  const replaced = named.flatMap((name) => {
    // Any text that can be a name may be the name of a tenant, or that of a schedule that is made.
    const isAnyName = name === 'tenant' || (name === 'schedule' && operation.method === 'PUT')
    const values = isAnyName ? badNames : [...badNames, ...strangers]
    return [...values, ...badEncodings].map((value) => ({
      ...right,
      what: `${value.slice(0, 40)} for ${name}`,
      path: pathOf(operation, { ...places, [name]: value }),
      expected: [400, 404, 414],
    }))
  })
  // What stands there may be the name of a tenant, or that of a schedule that is made.
  const endsWithName = /tenants(\/\{tenant\})?$/.test(operation.path) || operation.method === 'PUT'
  const suffixes = ['/', '//', ...badEncodings, '%00']
  const more = ['/.', '/..', '/%2e%2e/', '/__proto__', '.json', ';v=1', '~', '%20', '*', '%2f', "'"]
  const tails = endsWithName ? suffixes : [...suffixes, ...more]
  const changed = [
    ...tails.map((tail) => right.path + tail),
    `/${right.path}`,
    `/v2${right.path}`,
    right.path.toUpperCase(),
    `/.${right.path}`,
  ]
  const bent = changed.map((path) => ({ ...right, what: `the path ${path}`, path, expected: [400, 404] }))
  return [...replaced, ...bent]
}
