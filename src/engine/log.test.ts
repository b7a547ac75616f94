import { afterEach, expect, it, vi } from 'vitest'
import { logToStderr } from './log.ts'

afterEach(() => vi.restoreAllMocks())

function lineOf(entry: { message: string; error?: unknown }): string {
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  logToStderr({ level: 'warn', event: 'webhook.failed', ...entry })
  return String(write.mock.lastCall?.[0])
}

it('is one line for each entry, with the reason of what went wrong unless the message has it', () => {
  const refused = new Error('connect ECONNREFUSED\nand more')

  expect(lineOf({ message: 'Nobody was told.' })).toBe('sluice warn webhook.failed: Nobody was told.\n')
  expect(lineOf({ message: 'Nobody was told.', error: refused })).toBe(
    'sluice warn webhook.failed: Nobody was told. (connect ECONNREFUSED)\n',
  )
  expect(lineOf({ message: 'Failed: connect ECONNREFUSED', error: refused })).toBe(
    'sluice warn webhook.failed: Failed: connect ECONNREFUSED\n',
  )
  expect(lineOf({ message: 'Nobody was told.', error: 'gone' })).toMatch(/told\. \(gone\)\n$/)
})
