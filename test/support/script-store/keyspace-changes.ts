import { isDeepStrictEqual } from 'node:util'
import type { KeyContent, Keyspace } from '../keyspace.ts'

/** A key's content, or what changed of it; `null`: gone. A hash or zset maps fields to what they hold now. */
export type KeyChange = string | string[] | Record<string, string | number | boolean | null> | null

/** What differs, by key. */
export function difference(before: Keyspace, after: Keyspace): Record<string, KeyChange> {
  const changes: Record<string, KeyChange> = {}
  for (const name of Object.keys(before)) if (!(name in after)) changes[name] = null
  for (const [name, content] of Object.entries(after)) {
    const change = changeOf(before[name], content)
    if (change !== undefined) changes[name] = change
  }
  return changes
}

function changeOf(before: KeyContent | undefined, after: KeyContent): KeyChange | undefined {
  if (isDeepStrictEqual(before, after)) return undefined
  if ('string' in after) return after.string
  if ('list' in after) return after.list
  if ('set' in after) return after.set
  if ('stream' in after) return added(before, after.stream)
  const old = fieldsOf(before)
  const now = fieldsOf(after)
  const fields: Record<string, string | number | boolean | null> = {}
  for (const field of Object.keys(old)) if (!(field in now)) fields[field] = null
  for (const [field, value] of Object.entries(now)) if (old[field] !== value) fields[field] = value
  return fields
}

/** A stream only grows, except when it is trimmed: then it is shown whole. */
function added(before: KeyContent | undefined, after: readonly string[][]): string[] {
  const entries = after.map((fields) => fields.join(' '))
  const known = before !== undefined && 'stream' in before ? before.stream.map((fields) => fields.join(' ')) : []
  return known.every((entry, at) => entries[at] === entry) ? entries.slice(known.length) : entries
}

/** Fields and scores alike; whether the key expires is one more. */
function fieldsOf(content: KeyContent | undefined): Record<string, string | number | boolean> {
  if (content === undefined) return {}
  const ttl = content.ttl ? { '(expires)': true } : {}
  if ('hash' in content) return { ...content.hash, ...ttl }
  if ('zset' in content) return { ...content.zset, ...ttl }
  return ttl
}
