import { readFileSync } from 'node:fs'

/** Of the queue, or of one of its levels. */
const OF_QUEUE = /\b(?:q|(?<level>high|normal|low))\.(?<name>[a-z_]+)/g

/** What is packed into one field, in the order of the scripts: the names are theirs, so they are read from there. */
const ORDER = {
  state: namesIn('queue.lua', /local function pack_numbers\(q\).*?pack\((.*?)\n {2}\)/s, OF_QUEUE),
  pauses: namesIn('pauses.lua', /function pauses\.stored\(q\).*?pack\((.*?)\n {2}\)/s, OF_QUEUE),
  level: namesIn('tenants.lua', /local function pack_level\(at\)(.*?)\nend/s, /\bat\.(?<name>[a-z_]+)/g),
  action: ['state', ...namesIn('actions.lua', /local NUMBERS = \{(.*?)\n\}/s, /"(?<name>[a-z_]+)"/g)],
}

function namesIn(file: string, part: RegExp, name: RegExp): string[] {
  const source = readFileSync(new URL(`../../src/store/lua/${file}`, import.meta.url), 'utf8')
  const [, body = ''] = part.exec(source) ?? []
  const names = [...body.replaceAll(/--.*/g, '').matchAll(name)].map(({ groups }) =>
    groups?.['level'] ? `${groups['name']}:${groups['level']}` : `${groups?.['name']}`,
  )
  if (names.length === 0) throw new Error(`${file} packs no such names any more: nothing would be compared`)
  return names
}

export function packed(what: keyof typeof ORDER, values: Readonly<Record<string, string | number>>): string {
  return ORDER[what].map((name) => `${name}=${values[name] ?? 0}`).join(' ')
}

/** What was found, as it is predicted: each value with its name. */
export function named(what: keyof typeof ORDER, values: readonly string[]): string {
  return ORDER[what].map((name, at) => `${name}=${values[at]}`).join(' ')
}
