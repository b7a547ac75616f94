import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const NAME = 'dictionary'

const characters = Array.from({ length: 128 }, (_, code) => code)
const symbolOf = (code: number) => `<U${code.toString(16).toUpperCase().padStart(4, '0')}>`

function charmap(): string {
  const lines = characters.map((code) => `${symbolOf(code)} /x${code.toString(16).padStart(2, '0')} x`)
  return ['<code_set_name> ASCII', '<escape_char> /', 'CHARMAP', ...lines, 'END CHARMAP', ''].join('\n')
}

/** a A b B …, where bytes have A B … a b. */
function collation(): string {
  const lower = (code: number) => String.fromCharCode(code).toLowerCase().charCodeAt(0)
  const lines = characters.toSorted((a, b) => lower(a) - lower(b) || b - a).map(symbolOf)
  return ['LC_COLLATE', 'order_start forward', ...lines, 'order_end', 'END LC_COLLATE', ''].join('\n')
}

/**
 * Makes a locale of which texts are in the order of a dictionary, as in those of most countries, of which a build server has none.
 * Answers the variables under which a program that is started runs under it.
 */
export function makeDictionaryLocale(folder: string): { LOCPATH: string; LC_ALL: string } {
  writeFileSync(join(folder, 'charmap'), charmap())
  writeFileSync(join(folder, 'collation'), collation())
  // It says that all but the collation is missing, and ends as if it had failed.
  const args = ['--force', '--quiet', '--no-archive', '-i', './collation', '-f', './charmap', `./${NAME}`]
  const { stderr } = spawnSync('localedef', args, { cwd: folder, encoding: 'utf8' })
  if (!existsSync(join(folder, NAME, 'LC_COLLATE'))) throw new Error(`localedef made no locale: ${stderr}`)
  return { LOCPATH: folder, LC_ALL: NAME }
}
