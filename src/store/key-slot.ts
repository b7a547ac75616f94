const SLOTS = 16_384
// CRC-16/XMODEM, as Redis Cluster uses it.
const POLYNOMIAL = 0x1021

const table = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ POLYNOMIAL : crc << 1
  return crc
})

/** The slot of a Cluster that a key is in: of the part in the first braces, if there is one and it is not empty. */
export function slotOf(key: string): number {
  let crc = 0
  for (const byte of Buffer.from(tagOf(key))) crc = ((crc << 8) & 0xffff) ^ (table[(crc >> 8) ^ byte] as number)
  return crc % SLOTS
}

function tagOf(key: string): string {
  const from = key.indexOf('{')
  const to = key.indexOf('}', from + 1)
  return from >= 0 && to > from + 1 ? key.slice(from + 1, to) : key
}

/**
 * The first key of a command of ours; undefined: it names none. Scripts name theirs after their number, a stream reader
 * after a word, all others first.
 */
export function keyOf(command: string, args: readonly (string | number)[]): string | undefined {
  const name = command.toUpperCase()
  if (KEYLESS.has(name)) return undefined
  if (name === 'FCALL' || name === 'EVAL') return Number(args[1]) > 0 ? String(args[2]) : undefined
  if (name === 'XREAD') return String(args[args.findIndex((arg) => String(arg).toUpperCase() === 'STREAMS') + 1])
  return args[0] === undefined ? undefined : String(args[0])
}

const KEYLESS = new Set([
  'PING',
  'INFO',
  'TIME',
  'WAIT',
  'CONFIG',
  'CLIENT',
  'FUNCTION',
  'CLUSTER',
  'FLUSHALL',
  'DBSIZE',
])
