import fc from 'fast-check'
import { Command } from 'ioredis'
import { expect, it } from 'vitest'
import { PlainCommand } from './command.ts'

/** The bytes as ioredis itself would send them. */
function reference(name: string, args: string[]): string {
  return Buffer.from(new Command(name, args).toWritable(undefined as never)).toString('latin1')
}

function encoded(command: PlainCommand): string {
  return Buffer.from(command.toWritable()).toString('latin1')
}

const anyText = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  // Where the length gets another digit, in units and in bytes.
  fc
    .constantFrom(9, 10, 33, 34, 99, 100, 333, 334, 999, 1_000, 9_999, 10_000, 33_334)
    .chain((length) => fc.constantFrom('x', 'é', '€', '😀', '\ud800').map((unit) => unit.repeat(length))),
)
const anyArgument = fc.oneof(anyText, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.maxSafeInteger())

it('is sent byte for byte as ioredis would send it, whatever the arguments and their number', () => {
  fc.assert(
    fc.property(fc.array(anyArgument, { maxLength: 80 }), (args) => {
      const command = new PlainCommand('evalsha', args)

      expect(encoded(command)).toBe(reference('EVALSHA', args.map(String)))

      command.release()
    }),
    { numRuns: 300 },
  )
})

it('does not share its buffer before it is released', () => {
  const many = (letter: string) => Array.from({ length: 100 }, () => letter.repeat(50))
  const first = new PlainCommand('SET', many('a'))
  const sent = first.toWritable() as Buffer
  const bytes = sent.toString('latin1')

  new PlainCommand('SET', many('b')).toWritable()

  expect(sent.toString('latin1')).toBe(bytes)
})

it('uses the buffer of an answered command again', () => {
  const args = Array.from({ length: 100 }, () => 'a'.repeat(50))
  const first = new PlainCommand('SET', args)
  const { buffer } = first.toWritable() as Buffer
  first.release()

  expect((new PlainCommand('SET', args).toWritable() as Buffer).buffer).toBe(buffer)
})
