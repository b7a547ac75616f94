import { once } from 'node:events'
import { constants, createWriteStream } from 'node:fs'
import { access, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { CliError } from '../cli-error.ts'

/** Characters. */
const BLOCK_LENGTH = 64 * 1024

/** Writes a file of these lines. A reader sees the whole new file or what was there before. */
export async function writeLines(path: string, lines: AsyncIterable<string>): Promise<void> {
  const draft = `${path}.${process.pid}.new`
  await writeDraft(draft, lines).catch(async (error: unknown) => {
    await rm(draft, { force: true })
    throw writeError(error, path)
  })
  await rename(draft, path).catch((error: unknown) => {
    throw writeError(error, path)
  })
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

/** Asked before the first call is made: after the last it would be too late. */
export async function assertWritable(path: string): Promise<void> {
  try {
    await access(dirname(path), constants.W_OK)
    if ((await stat(path).catch(() => undefined))?.isDirectory()) throw Object.assign(new Error(), { code: 'EISDIR' })
  } catch (error) {
    throw writeError(error, path)
  }
}

function writeError(error: unknown, path: string): unknown {
  const { code } = error as NodeJS.ErrnoException
  const why = { ENOENT: 'its folder does not exist', EACCES: 'it may not be written', EISDIR: 'it is a folder' }[
    code ?? ''
  ]
  return why === undefined ? error : new CliError('usage', `${path}: ${why}`)
}
