import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { groupKeys, keyPatterns, queueKeys } from '../../src/store/keys.ts'
import { listedNames, read, root } from './markdown.ts'

/** What a key is called before its changing part: `lane` of `lane:<level>:<lane>:<tenant>`. */
function stem(pattern: string): string {
  return pattern.split(':')[0] ?? ''
}

/** Stems of the keys that scripts name by themselves: `prefix .. "lane:" .. …` or `format("%slane:…", prefix, …)`. */
function stemsBuiltByScripts(): string[] {
  return ['src/store/lua', 'src/store/scripts']
    .flatMap((folder) => readdirSync(join(root, folder)).map((name) => `${folder}/${name}`))
    .filter((path) => path.endsWith('.lua'))
    .flatMap((path) => Array.from(read(path).matchAll(/prefix \.\. "([a-z]+):|"%s([a-z]+):/g)))
    .map((match) => match[1] ?? match[2] ?? '')
}

function stemsBuiltPerClient(): string[] {
  const start = queueKeys('prefix', 'queue', '').queue.replace(/queue$/, '')
  return Object.values(queueKeys('prefix', 'queue', '<client>'))
    .filter((key) => key.includes('<client>'))
    .map((key) => stem(key.slice(start.length)))
    .concat(stem(groupKeys('prefix', 'group', '<client>').client.split('}:')[1] ?? ''))
}

it('docs/keys.md lists every key, each once, and no other', () => {
  expect(listedNames('docs/keys.md')).toEqual(keyPatterns.toSorted())
})

it('the keys that scripts name by themselves are those that src/store/keys.ts lists', () => {
  const listed = keyPatterns.filter((pattern) => pattern.includes('<')).map(stem)

  expect(new Set([...stemsBuiltByScripts(), ...stemsBuiltPerClient()])).toEqual(new Set(listed))
})
