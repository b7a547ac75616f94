import { describe, expect, it } from 'vitest'
import type { AuditReport } from '../../index.ts'
import { auditFinding } from './queue-checks.ts'

function finding(report: Partial<AuditReport>, { isRepairing = false } = {}) {
  return auditFinding(
    'web',
    { tenants: 2, differences: [], counts: {}, skipped: [], cursor: undefined, ...report },
    { isRepairing },
  )
}

describe('an audit', () => {
  it('is all right when it has looked at all and found nothing', () => {
    expect(finding({})).toMatchObject({ verdict: 'ok', found: expect.stringContaining('of 2 tenants') })
  })

  it('is a warning when it could not look at all', () => {
    const found = finding({ skipped: ['claims', 'delayed', 'tenant:a', 'tenant:b', 'tenant:c'] })

    expect(found).toMatchObject({ verdict: 'warning', fix: expect.any(String) })
    expect(found.found).toMatch(/; too large to be looked at: claims, delayed, tenant:a and 2 more$/)
  })

  it.each([
    [{ isRepairing: false, skipped: [] }, 'failure'],
    [{ isRepairing: false, skipped: ['claims'] }, 'failure'],
    [{ isRepairing: true, skipped: [] }, 'ok'],
    [{ isRepairing: true, skipped: ['claims'] }, 'warning'],
  ])('that has found something is with %j: %s', ({ isRepairing, skipped }, verdict) => {
    const found = finding({ counts: { 'tenant.running': 3 }, skipped }, { isRepairing })

    expect(found).toMatchObject({ verdict, found: expect.stringContaining('3 tenant.running') })
  })
})
