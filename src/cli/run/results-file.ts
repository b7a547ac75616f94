import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { replaceFile } from '../written-file.ts'

/** Characters. */
const BLOCK_LENGTH = 64 * 1024

/** Writes a file of these lines. */
export async function writeLines(path: string, lines: AsyncIterable<string>): Promise<void> {
  await replaceFile(path, (draft) => writeDraft(draft, lines))
}

async function writeDraft(draft: string, lines: AsyncIterable<string>): Promise<void> {
  const file = createWriteStream(draft)
  await once(file, 'open')
  const failed = once(file, 'error').then(([error]) => {
    throw error as Error
  })
  // Heard where it is raced below; by itself it must not end the process.
  failed.catch(() => {})
  // A write for each line would take longer than fetching it.
  let block = ''
  for await (const line of lines) {
    block += `${line}\n`
    if (block.length < BLOCK_LENGTH) continue
    if (!file.write(block)) await Promise.race([once(file, 'drain'), failed])
    block = ''
  }
  file.end(block)
  await Promise.race([once(file, 'finish'), failed])
}
