import type { Reporter, TestModule } from 'vitest/node'

interface Counts {
  passed: number
  failed: number
  skipped: number
}

function countTests(modules: readonly TestModule[]): Counts {
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 }
  for (const module of modules) {
    let failedHere = 0
    for (const test of module.children.allTests()) {
      const { state } = test.result()
      if (state === 'passed') counts.passed++
      else if (state === 'failed') failedHere++
      // Also a test that never got a result, because a hook before it failed.
      else counts.skipped++
    }
    // A file that does not load, or whose hook fails, has no failed test to show for it and is a failure all the same.
    counts.failed += module.state() === 'failed' ? Math.max(1, failedHere) : failedHere
  }
  return counts
}

export interface LeftOut {
  /** The program that is not on this machine. */
  missing: string
  /** The test files that need it; each counts as one skipped. */
  files: readonly string[]
}

/** Ends the output with one line that programs can read: `N passed, N failed, N skipped`. */
export class SummaryReporter implements Reporter {
  readonly #leftOut: readonly LeftOut[]

  constructor(leftOut: readonly LeftOut[]) {
    this.#leftOut = leftOut
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const { passed, failed, skipped } = countTests(modules)
    const filesLeftOut = this.#leftOut.reduce((sum, { files }) => sum + files.length, 0)
    const lines = [
      ...this.#leftOut.map(({ missing, files }) => `skipped ${files.length} test files: ${missing} is not installed`),
      `${passed} passed, ${failed + unhandledErrors.length} failed, ${skipped + filesLeftOut} skipped`,
    ]

    // At exit, because the other reporters still print after their hooks have returned.
    process.once('exit', () => process.stdout.write(`${lines.join('\n')}\n`))
  }
}
