// `npm run check`: everything that can be said about the code without running it. Each check is one line with its
// time; the output of a tool is shown only when it fails. `npm run check -- types layers` runs those alone.
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { missingTools, toolsAreRequired } from './tools.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))

/** The tools are heavy and the machine may be small: more at once would only make each slower. */
const PARALLEL = 2

/**
 * @typedef {{ ok: boolean, output: string, skipped?: string }} Outcome
 * @typedef {object} Check
 * @property {string} name
 * @property {() => Promise<Outcome>} run
 */

/**
 * @param {string} command
 * @param {...string} args
 * @returns {Promise<Outcome>}
 */
function tool(command, ...args) {
  return new Promise((resolve) => {
    const path = `${join(root, 'node_modules/.bin')}:${process.env.PATH}`
    const child = spawn(command, args, {
      cwd: root,
      env: { ...process.env, PATH: path },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    child.stdout.on('data', (data) => (output += data))
    child.stderr.on('data', (data) => (output += data))
    child.on('error', (error) => resolve({ ok: false, output: error.message }))
    child.on('close', (code) => resolve({ ok: code === 0, output }))
  })
}

/** What a user would install: built and packed as for publishing, then read by the tools that know how others resolve it. */
async function checkPackaging() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-pack-'))
  try {
    const packed = await tool('npm', 'pack', '--json', '--pack-destination', folder)
    if (!packed.ok) return packed
    const tarball = join(folder, JSON.parse(packed.output.slice(packed.output.search(/^\[/m)))[0].filename)
    const linted = await tool('publint', 'run', '--strict', tarball)
    if (!linted.ok) return linted
    // The package has ES modules alone: that `require` without a flag and older resolutions do not find it is meant.
    return await tool('attw', tarball, '--profile', 'esm-only')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function checkLayers() {
  const folders = ['src', 'test', 'bench', 'scenario', 'scripts', 'examples'].filter((folder) =>
    existsSync(join(root, folder)),
  )
  return tool('depcruise', '--config', '.dependency-cruiser.cjs', ...folders)
}

/** @returns {Promise<Outcome>} */
async function checkLua() {
  const missing = missingTools().find((candidate) => candidate.name === 'luacheck')
  if (missing === undefined) return tool('luacheck', '--quiet', '--no-color', '.')
  return { ok: !toolsAreRequired, output: missing.otherwise, skipped: `luacheck is missing: ${missing.otherwise}` }
}

/**
 * First and alone: the module it writes is read by the checks that follow.
 * @type {Check}
 */
const scripts = { name: 'scripts', run: () => tool('tsx', 'scripts/build-lua.ts') }

/** @type {readonly Check[]} */
const checks = [
  { name: 'types', run: () => tool('tsc', '--noEmit') },
  { name: 'packaging', run: checkPackaging },
  { name: 'typed-lint', run: () => tool('eslint', '.', '--max-warnings', '0') },
  { name: 'layers', run: checkLayers },
  { name: 'dead-code', run: () => tool('knip') },
  { name: 'format-and-lint', run: () => tool('biome', 'check', '--error-on-warnings') },
  { name: 'luacheck', run: checkLua },
  // When it fails after an installation: node scripts/complete-lock.mjs.
  { name: 'lock-file', run: () => tool('npm', 'ci', '--dry-run', '--ignore-scripts') },
]

/** @param {Check} check */
async function report(check) {
  const start = performance.now()
  const { ok, output, skipped } = await check.run()
  const seconds = ((performance.now() - start) / 1000).toFixed(1)
  const word = skipped && ok ? `skipped, ${skipped}` : ok ? 'clean' : 'FAILED'
  console.log(`${check.name.padEnd(16)} ${seconds.padStart(5)} s  ${word}`)
  if (!ok) console.log(`\n${output.trim()}\n`)
  return ok
}

/** @param {readonly Check[]} list */
async function runAll(list) {
  const queue = [...list]
  let failed = 0
  const worker = async () => {
    for (let check = queue.shift(); check !== undefined; check = queue.shift()) {
      if (!(await report(check))) failed++
    }
  }
  await Promise.all(Array.from({ length: PARALLEL }, worker))
  return failed
}

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => ![scripts, ...checks].some((check) => check.name === name))
if (unknown.length > 0) {
  console.error(
    `no check is called ${unknown.join(', ')}; there are ${[scripts, ...checks].map(({ name }) => name).join(', ')}`,
  )
  process.exit(2)
}

const chosen = checks.filter(({ name }) => wanted.length === 0 || wanted.includes(name))
const failed = (await runAll([scripts])) + (await runAll(chosen))
console.log(failed === 0 ? 'all checks are clean' : `${failed} of ${chosen.length + 1} checks failed`)
process.exitCode = failed === 0 ? 0 : 1
