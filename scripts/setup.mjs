// Makes a fresh machine ready: npm packages, the programs of tools.mjs, NestJS 11. The first step of every npm script that needs
// them, so it uses nothing but Node and is done in milliseconds when nothing is missing.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { installNest11, isNest11Installed } from './nest-11.mjs'
import { withServicesHeldBack } from './policy-rc.mjs'
import { missingTools, toolsAreRequired } from './tools.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))

/** @param {string} message */
function say(message) {
  process.stderr.write(`setup: ${message}\n`)
}

/**
 * @param {string} command
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} [env]
 */
function run(command, args, env = process.env, cwd = root) {
  // Output goes to stderr: a script that prints JSON on stdout stays readable by programs.
  const { status } = spawnSync(command, args, { cwd, env, stdio: ['ignore', 2, 2] })
  return status === 0
}

/** @param {string} path @returns {Record<string, { version?: string, optional?: boolean }>} */
function packagesOf(path) {
  return JSON.parse(readFileSync(`${root}/${path}`, 'utf8')).packages
}

/** npm notes what it installed in a lock file of its own: comparing the two is exact where file times are not. */
function packagesAreInstalled() {
  if (!existsSync(`${root}/node_modules/.package-lock.json`)) return false
  const installed = packagesOf('node_modules/.package-lock.json')
  return Object.entries(packagesOf('package-lock.json'))
    .filter(([path]) => path !== '')
    .every(([path, wanted]) => {
      const found = installed[path]
      // Optional packages are mostly builds for other systems, which npm leaves out.
      return found === undefined ? wanted.optional === true : found.version === wanted.version
    })
}

function installPackages() {
  if (packagesAreInstalled()) return
  say('installing npm packages')
  if (!run('npm', ['ci', '--no-audit', '--no-fund'])) {
    say('npm ci failed; see above')
    process.exit(1)
  }
}

function canUseApt() {
  return process.getuid?.() === 0 && existsSync('/etc/debian_version') && existsSync('/usr/bin/apt-get')
}

/** @param {string[]} packages */
function aptInstall(packages) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const install = () => run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...packages], env)
  // Package lists may be absent or name versions that are gone: refresh them only when the first attempt says so.
  return install() || (run('apt-get', ['update', '-qq'], env) && install())
}

function installTools() {
  const missing = missingTools()
  if (missing.length === 0) return
  if (canUseApt()) {
    const packages = missing.map((tool) => tool.debianPackage)
    say(`installing ${packages.join(', ')} with apt-get`)
    withServicesHeldBack(() => aptInstall(packages))
    // Nor is the service wanted at the next boot.
    for (const { debianService } of missing) {
      if (debianService) spawnSync('update-rc.d', [debianService, 'disable'], { stdio: 'ignore' })
    }
  }
  const stillMissing = missingTools()
  for (const tool of stillMissing) say(`${tool.name} is missing: ${tool.otherwise}`)
  if (stillMissing.length > 0 && toolsAreRequired) process.exit(1)
}

/** Only some tests of the NestJS module need it: without a network they are left out, and named. */
function installOtherNest() {
  if (isNest11Installed()) return
  say('installing NestJS 11 for the tests of the module')
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--fetch-retries', '1']
  installNest11((folder) => run('npm', args, process.env, folder))
  if (isNest11Installed()) return
  say('NestJS 11 could not be installed: see above')
  if (toolsAreRequired) process.exit(1)
}

installPackages()
installTools()
if (process.argv.includes('--for-tests')) installOtherNest()
