// A registry that mirrors the packages of one system only makes npm write a lock file without those for the others,
// and `npm ci` then refuses it everywhere. They are optional, come in the exact version their parent names, and say in
// their name which system they are for: that is enough to add them. Their integrity npm adds where it installs them.
import { readFileSync, writeFileSync } from 'node:fs'

/**
 * @typedef {object} Entry
 * @property {string} [version]
 * @property {boolean} [dev]
 * @property {string} [license]
 * @property {boolean} [optional]
 * @property {string[]} [os]
 * @property {string[]} [cpu]
 * @property {string[]} [libc]
 * @property {Record<string, string>} [optionalDependencies]
 */

const file = new URL('../package-lock.json', import.meta.url)
/** @type {{ packages: Record<string, Entry> }} */
const lock = JSON.parse(readFileSync(file, 'utf8'))

const SYSTEMS = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32']
const PROCESSORS = ['arm', 'arm64', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64']

/** @param {string} name */
function systemOf(name) {
  const words = name.split(/[-/]/)
  const libc = words.some((word) => word.startsWith('musl'))
    ? 'musl'
    : words.some((word) => word.startsWith('gnu'))
      ? 'glibc'
      : undefined
  return {
    os: SYSTEMS.filter((system) => words.includes(system)),
    cpu: PROCESSORS.filter((processor) => words.includes(processor)),
    libc: libc === undefined ? [] : [libc],
  }
}

/**
 * @param {string} name
 * @param {string} version
 * @param {Entry} parent
 * @returns {Entry}
 */
function entryFor(name, version, parent) {
  const { os, cpu, libc } = systemOf(name)
  if (cpu.length === 0) throw new Error(`cannot tell from its name which system ${name} is for`)
  return {
    version,
    cpu,
    ...(parent.dev && { dev: true }),
    ...(libc.length > 0 && { libc }),
    ...(parent.license && { license: parent.license }),
    optional: true,
    ...(os.length > 0 && { os }),
  }
}

let added = 0
for (const parent of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
    const path = `node_modules/${name}`
    // A range instead of one version is a package for every system that npm has simply not found.
    if (path in lock.packages || !/^\d/.test(version)) continue
    lock.packages[path] = entryFor(name, version, parent)
    added++
  }
}

lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => a.localeCompare(b, 'en')))
if (added > 0) writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`)
console.log(`${added} packages for other systems added to package-lock.json`)
