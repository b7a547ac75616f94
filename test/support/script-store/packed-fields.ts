import type { Redis as Client } from 'ioredis'
import type { KeyContent } from '../keyspace.ts'

const levelFields = [
  'lanes',
  'sequence',
  'used',
  'received',
  'entitled',
  'virtual',
  'longest',
  'since',
  'score',
  'lane',
  'reached',
]

const actionFields = [
  ...['name', 'sealed', 'first', 'next', 'total', 'waiting', 'running', 'delayed', 'succeeded', 'failed', 'canceled'],
  ...['received', 'marks', 'created', 'started', 'ended', 'last_end', 'attempts', 'throttles', 'errors', 'notified'],
  ...['seen_at', 'seen_done', 'before_at', 'before_done', 'dropped'],
]

/** Fields that scripts pack, and the names of what is in them; none: it is one table, shown as JSON. */
const packedFields: Record<string, Record<string, readonly string[]>> = {
  queue: {
    settings: [],
    state: [
      ...['clock', 'fence', 'turns', 'restarts', 'restarted_at', 'waiting', 'delayed', 'running'],
      ...['running:high', 'running:normal', 'running:low'],
      ...['virtual:high', 'virtual:normal', 'virtual:low', 'weights:high', 'weights:normal', 'weights:low'],
      'canceling',
      ...['weights:parked', 'slot', 'starts', 'starts_before', 'starts_earlier', 'active_since', 'snapshot_due'],
      ...['entry:high', 'entry:normal', 'entry:low', 'round:high', 'round:normal', 'round:low'],
      ...['reached:high', 'reached:normal', 'reached:low'],
    ],
    pauses: [
      ...['paused', 'paused:high', 'paused:normal', 'paused:low'],
      ...['resumed', 'resumed:high', 'resumed:normal', 'resumed:low'],
    ],
  },
  '@limits': { 'gitlab/rule': [] },
  tenant: {
    limits: [],
    state: ['waiting', 'delayed', 'total', 'front', 'marks', 'throttled'],
    pace: ['slot', 'received', 'starts_before', 'starts_earlier', 'active_since', 'backoff', 'uncounted', 'costs'],
    high: levelFields,
    normal: levelFields,
    low: levelFields,
  },
  action: { rules: [], watchers: [], state: actionFields },
}

/**
 * What a key holds, readable where scripts pack, and records on one line.
 * @param part - The key's name without its prefix.
 */
export async function unpackKey(client: Client, name: string, part: string, content: KeyContent): Promise<KeyContent> {
  if ('list' in content) return { ...content, list: content.list.map(onOneLine) }
  if (!('hash' in content)) return content
  const hash: Record<string, string> = {}
  for (const [field, value] of Object.entries(content.hash)) {
    const names = packedFields[part.split(':')[0] as string]?.[field]
    if (names === undefined) hash[field] = onOneLine(value)
    else Object.assign(hash, named(field, names, await unpackField(client, name, field)))
  }
  // A remembered reply is packed; its number says whose it is.
  if (/^@?client:/.test(part)) for (const slot in hash) hash[slot] = (hash[slot] as string).split('|')[0] as string
  return { ...content, hash }
}

async function unpackField(client: Client, name: string, field: string): Promise<unknown[]> {
  const unpack = field === 'pace' ? "struct.unpack('<I4dI4I4dI4dd', value)" : 'cmsgpack.unpack(value)'
  const source = `local value = redis.call('HGET', KEYS[1], ARGV[1]) return cjson.encode({ ${unpack} })`
  return JSON.parse((await client.eval(source, 1, name, field)) as string)
}

/** `{ 'state.waiting': 2, … }`; a 0 says as much as nothing. */
function named(field: string, names: readonly string[], values: readonly unknown[]): Record<string, string> {
  if (names.length === 0) return { [field]: JSON.stringify(sorted(values[0])) }
  const entries = names.map((name, at) => [`${field}.${name}`, values[at] ?? 0])
  return Object.fromEntries(entries.filter(([, value]) => value !== 0 && value !== ''))
}

/** The lines of a record, separated by bars. */
function onOneLine(text: string): string {
  return text.replaceAll('\n', '|')
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([name, each]) => [name, sorted(each)]))
}
