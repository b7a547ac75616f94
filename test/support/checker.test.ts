import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkHistory, describeViolations } from './checker.ts'
import { CHECKED, correctHistory } from './history-generator.ts'
import { DELIVERY_MUTANTS } from './mutants/delivery.ts'
import { EditableHistory } from './mutants/editable-history.ts'
import { HARMLESS } from './mutants/harmless.ts'
import { LIMIT_MUTANTS } from './mutants/limits.ts'
import { SUBMISSION_MUTANTS } from './mutants/submission.ts'
import { TIMING_MUTANTS } from './mutants/timing.ts'

const MUTANTS = [...SUBMISSION_MUTANTS, ...DELIVERY_MUTANTS, ...LIMIT_MUTANTS, ...TIMING_MUTANTS]

describe('the history checker', () => {
  for (const faults of [false, true]) {
    it(`finds nothing in correct histories ${faults ? 'with' : 'without'} faults`, () => {
      fc.assert(
        fc.property(correctHistory({ faults }), (events) => {
          const violations = checkHistory(events, CHECKED)

          expect(violations, describeViolations(violations)).toEqual([])
        }),
        { numRuns: 200 },
      )
    })
  }

  for (const { name, change } of HARMLESS) {
    it(`finds nothing where ${name}`, () => {
      fc.assert(
        fc.property(correctHistory({ faults: true }), (events) => {
          const violations = checkHistory(change(new EditableHistory(events)), CHECKED)

          expect(violations, describeViolations(violations)).toEqual([])
        }),
        { numRuns: 50 },
      )
    })
  }

  it('is tried with at least forty ways to break a promise', () => {
    expect(new Set(MUTANTS.map(({ name }) => name)).size).toBeGreaterThanOrEqual(40)
  })

  for (const { name, check, faults, break: breakHistory, options } of MUTANTS) {
    it(`notices (${check}) that ${name}`, () => {
      fc.assert(
        fc.property(correctHistory({ faults }), (events) => {
          const violations = checkHistory(breakHistory(new EditableHistory(events)), { ...CHECKED, ...options })

          expect(violations.map((violation) => violation.check)).toContain(check)
          expect(violations.every((violation) => violation.events.length > 0)).toBe(true)
        }),
        { numRuns: 20 },
      )
    })
  }
})
