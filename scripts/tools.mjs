// The programs outside npm that the tests and checks use, and how each system installs them.
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/**
 * @typedef {object} Tool
 * @property {string} name what a person calls it
 * @property {string[]} binaries all of them must be on the PATH
 * @property {string} debianPackage
 * @property {string} [debianService] the service that comes with the package and is not wanted
 * @property {string} otherwise how to get it where apt-get is not at hand
 */

/** @type {readonly Tool[]} */
export const tools = [
  {
    name: 'redis-server',
    binaries: ['redis-server', 'redis-cli'],
    debianPackage: 'redis-server',
    debianService: 'redis-server',
    otherwise: 'apt-get install redis-server, dnf install redis or brew install redis (7.0 or newer)',
  },
  {
    name: 'luacheck',
    binaries: ['luacheck'],
    debianPackage: 'lua-check',
    otherwise: 'apt-get install lua-check, dnf install luacheck or luarocks install luacheck',
  },
  {
    name: 'curl',
    binaries: ['curl'],
    debianPackage: 'curl',
    otherwise: 'apt-get install curl, dnf install curl or brew install curl',
  },
  {
    name: 'jq',
    binaries: ['jq'],
    debianPackage: 'jq',
    otherwise: 'apt-get install jq, dnf install jq or brew install jq',
  },
  {
    // A terminal for tests of the live view; that of other systems than Linux takes other arguments.
    name: 'script',
    binaries: ['script'],
    debianPackage: 'bsdutils',
    otherwise: 'apt-get install bsdutils or dnf install util-linux-script',
  },
  {
    // By another name than its program, which the source of the command line holds: only tests that draw need it.
    name: 'librsvg',
    binaries: ['rsvg-convert'],
    debianPackage: 'librsvg2-bin',
    otherwise: 'apt-get install librsvg2-bin, dnf install librsvg2-tools or brew install librsvg',
  },
  {
    // Makes a locale for tests of a Redis that runs under one; that of other systems than Linux makes others.
    name: 'localedef',
    binaries: ['localedef'],
    debianPackage: 'libc-bin',
    otherwise: 'apt-get install libc-bin or dnf install glibc-common',
  },
]

/** @param {string} binary */
function isOnPath(binary) {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, binary), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

export function missingTools() {
  return tools.filter((tool) => !tool.binaries.every(isOnPath))
}

/** On a build server a missing tool is a failure; on a developer's machine its tests are skipped and named. */
export const toolsAreRequired =
  process.env.SLUICE_REQUIRE_SERVICES === '1' || ['1', 'true'].includes(process.env.CI ?? '')
