import type { Reporter, TestModule } from 'vitest/node'
import { missingTools } from './tools.mjs'

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
      // A test that never got a result was cut off by a failing hook or a crashed worker.
      if (state === 'passed') counts.passed++
      else if (state === 'failed') failedHere++
      else counts.skipped++
    }
    // A file that does not load, or whose hook fails, has no failed test to show for it and is a failure all the same.
    counts.failed += module.state() === 'failed' ? Math.max(1, failedHere) : failedHere
  }
  return counts
}

/** Ends the output with one line that programs can read: `N passed, N failed, N skipped`. */
export class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const { passed, failed, skipped } = countTests(modules)
    const missing = missingTools().map((tool) => tool.name)
    const lines = [`${passed} passed, ${failed + unhandledErrors.length} failed, ${skipped} skipped`]
    if (missing.length > 0) lines.unshift(`not on this machine, so its tests were skipped: ${missing.join(', ')}`)

    // At exit, because the other reporters still print after their hooks have returned.
    process.once('exit', () => process.stdout.write(`${lines.join('\n')}\n`))
  }
}
