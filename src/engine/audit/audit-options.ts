import { boolean, integer, type Settings } from '../../assert.ts'

const day = 86_400_000

export const repeatingAuditRules = {
  enabled: boolean({ default: true }),
  everyMs: integer({ min: 100, max: 30 * day, default: 600_000 }),
  stepMs: integer({ min: 1, max: day, default: 500 }),
  idleStepMs: integer({ min: 1, max: day, default: 60_000 }),
}

/** How this process takes part in the repeating audit; see QueueOptions. */
export type AuditSettings = Settings<typeof repeatingAuditRules>
