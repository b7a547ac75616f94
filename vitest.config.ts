import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { SummaryReporter } from './scripts/summary-reporter.ts'

/**
 * Tests that stop and kill processes, or build the package, and measure time while they do: they run one file at a
 * time, after the others, so that neither disturbs the other.
 */
const alone = ['test/failure/**/*.test.ts', 'test/package/**/*.test.ts']

export default defineConfig({
  resolve: {
    alias: [
      { find: /^sluice$/, replacement: fileURLToPath(new URL('src/index.ts', import.meta.url)) },
      { find: /^sluice\/testing$/, replacement: fileURLToPath(new URL('src/testing/index.ts', import.meta.url)) },
    ],
  },
  test: {
    pool: 'forks',
    reporters: ['default', new SummaryReporter()],
    // Generous: a time-out is there to end a test that hangs, not to judge a busy machine.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'together',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: alone,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'alone',
          include: alone,
          testTimeout: 180_000,
          fileParallelism: false,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
