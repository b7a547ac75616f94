// NestJS 11 beside the 12 of the repository. Two versions of one framework cannot share a node_modules, and two in the
// repository would confuse compilers and linters: this one is installed outside of it, once for each lock file.
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const source = join(root, 'test/nestjs/nest-11')
const lock = readFileSync(join(source, 'package-lock.json'))
const hash = createHash('sha256').update(lock).digest('hex').slice(0, 16)

const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache')

/** Where it is, or would be. */
export const nest11Folder = join(cache, 'sluice', `nest-11-${hash}`)

/** What tests that need it have in their text: they are left out where it is missing. */
export const nest11Name = 'nest-11'

export function isNest11Installed() {
  return existsSync(nest11Folder)
}

/**
 * Whole or not at all, also when two do it at once: under another name first.
 * @param {(folder: string) => boolean} install - runs `npm ci` in a folder, says whether it went well
 */
export function installNest11(install) {
  const folder = `${nest11Folder}.${process.pid}`
  mkdirSync(folder, { recursive: true })
  try {
    for (const file of ['package.json', 'package-lock.json']) copyFileSync(join(source, file), join(folder, file))
    copyFileSync(join(root, '.npmrc'), join(folder, '.npmrc'))
    if (install(folder) && !isNest11Installed()) renameSync(folder, nest11Folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
