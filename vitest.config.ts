import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { filesNeeding } from './scripts/files-needing.ts'
import { isNest11Installed, nest11Name } from './scripts/nest-11.mjs'
import { type LeftOut, SummaryReporter } from './scripts/summary-reporter.ts'
import { missingTools, toolsAreRequired } from './scripts/tools.mjs'

/** Tests of single scripts: a process runs many files, one after the other, on one server; and all once more on a Cluster. */
const scripts = ['src/store/scripts/**/*.test.ts']

/** Where the rules of sharing are tried over thousands of claims nodes make no difference, and each claim takes longer. */
const longScripts = ['src/store/scripts/finish-and-claim-{rounds,shares,costs}.test.ts']

/** Tests that judge what is done by the second: they run one file at a time, after all others. */
const alone = [
  'test/failure/{bucket-promise,idle,wake-up}.test.ts',
  'test/cli/{demo,run}.test.ts',
  'test/simulate/prediction.test.ts',
]

/**
 * Tests that stop and kill processes, or build the package. They mostly wait, for leases and failovers: two at a time, after
 * the others, so that nobody who is busy disturbs them.
 */
const inPairs = ['test/failure/**/*.test.ts', 'test/package/**/*.test.ts', 'test/nestjs/example.test.ts']

/** What runs first. More files at a time than there are cores: tests mostly wait. */
const first = { maxWorkers: 3, sequence: { groupOrder: 0 } }

function testFiles(): string[] {
  return ['src', 'test', 'scenario', 'scripts'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.test.ts'))
      .map((path) => `${folder}/${path}`),
  )
}

function filesToLeaveOut(): LeftOut[] {
  if (toolsAreRequired) return []
  const missing = missingTools().map(({ name }) => name)
  if (!isNest11Installed()) missing.push(nest11Name)
  return missing
    .map((name) => ({ missing: name, files: filesNeeding(name, testFiles()) }))
    .filter(({ files }) => files.length > 0)
}

const leftOut = filesToLeaveOut()
const leftOutFiles = leftOut.flatMap(({ files }) => files)

export default defineConfig({
  resolve: {
    alias: [
      { find: /^sluice$/, replacement: fileURLToPath(new URL('src/index.ts', import.meta.url)) },
      { find: /^sluice\/http$/, replacement: fileURLToPath(new URL('src/http/index.ts', import.meta.url)) },
      { find: /^sluice\/nestjs$/, replacement: fileURLToPath(new URL('src/nestjs/index.ts', import.meta.url)) },
      { find: /^sluice\/testing$/, replacement: fileURLToPath(new URL('src/testing/index.ts', import.meta.url)) },
    ],
  },
  test: {
    pool: 'forks',
    globalSetup: 'test/cli/share-built-package.ts',
    reporters: ['default', new SummaryReporter(leftOut)],
    // Generous: a time-out is there to end a test that hangs, not to judge a busy machine.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'together',
          include: ['{src,test,scenario,scripts}/**/*.test.ts'],
          exclude: [...scripts, ...alone, ...inPairs, ...leftOutFiles],
          ...first,
        },
      },
      {
        extends: true,
        test: {
          name: 'scripts',
          include: scripts,
          exclude: leftOutFiles,
          isolate: false,
          ...first,
        },
      },
      {
        extends: true,
        test: {
          name: 'scripts on a Cluster',
          include: scripts,
          exclude: [...longScripts, ...leftOutFiles],
          env: { SCRIPTS_RUN_ON: 'cluster-of-three' },
          isolate: false,
          ...first,
        },
      },
      {
        extends: true,
        test: {
          name: 'in pairs',
          include: inPairs,
          exclude: [...alone, ...leftOutFiles],
          testTimeout: 180_000,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'alone',
          include: alone,
          exclude: leftOutFiles,
          testTimeout: 180_000,
          fileParallelism: false,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
})
