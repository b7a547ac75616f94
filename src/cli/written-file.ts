import { constants } from 'node:fs'
import { access, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { CliError } from './cli-error.ts'

/** Asked before the work is begun: after it, it would be too late. */
export async function assertWritable(path: string): Promise<void> {
  const folder = dirname(path)
  try {
    await access(folder, constants.W_OK)
    if (!(await stat(folder)).isDirectory()) throw Object.assign(new Error(), { code: 'ENOTDIR' })
    if ((await stat(path).catch(() => undefined))?.isDirectory()) throw Object.assign(new Error(), { code: 'EISDIR' })
  } catch (error) {
    throw writeError(error, path)
  }
}

/** A reader sees the whole new file or what was there before. @param write - Makes a file of the name it is given. */
export async function replaceFile(path: string, write: (draft: string) => Promise<void>): Promise<void> {
  const draft = `${path}.${process.pid}.new`
  try {
    await write(draft)
    await rename(draft, path)
  } catch (error) {
    await rm(draft, { force: true }).catch(() => {})
    throw writeError(error, path)
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'its folder does not exist',
  ENOTDIR: 'what should be its folder is none',
  EACCES: 'it may not be written',
  EROFS: 'it may not be written',
  EISDIR: 'it is a folder',
}

function writeError(error: unknown, path: string): unknown {
  const why = reasons[(error as NodeJS.ErrnoException).code ?? '']
  return why === undefined ? error : new CliError('usage', `${path}: ${why}`, { cause: error })
}
