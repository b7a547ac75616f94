import { boolean, group, integer, optional, type Report, type Settings } from '../assert.ts'
import type { SettingValues } from '../store/settings.ts'

const day = 86_400_000

export const backoffRules = {
  enabled: boolean({ default: true }),
  baseBackoffMs: integer({ min: 1, max: day, default: 1_000 }),
  maxBackoffMs: integer({ min: 1, max: day, default: 120_000 }),
  snapshotMs: integer({ min: 1_000, max: day, default: 10_000 }),
  retentionMs: integer({ min: 1_000, max: 30 * day, default: 3_600_000 }),
}

/** How a queue takes its backlog, changes made while running included; see QueueOptions. */
export type CongestionSettings = Settings<typeof backoffRules>

export const congestionPatch = optional(
  group({
    enabled: optional(backoffRules.enabled),
    baseBackoffMs: optional(backoffRules.baseBackoffMs),
    maxBackoffMs: optional(backoffRules.maxBackoffMs),
    snapshotMs: optional(backoffRules.snapshotMs),
    retentionMs: optional(backoffRules.retentionMs),
  }),
)

type Patch = { readonly [Name in keyof CongestionSettings]?: CongestionSettings[Name] | undefined }

/** What is given must fit together; what is changed alone is taken with what there is, and the shorter backoff wins. */
export function checkBackoffs({ congestion }: { readonly congestion?: Patch | undefined }, report: Report): void {
  const { baseBackoffMs: base, maxBackoffMs: most } = congestion ?? {}
  if (base === undefined || most === undefined || base <= most) return
  report('congestion.maxBackoffMs', `must be at least baseBackoffMs (${base}), not ${most}`)
}

/** What is given, as the scripts read it. */
export function congestionValues(settings: Patch): Partial<SettingValues> {
  const { enabled, baseBackoffMs, maxBackoffMs, snapshotMs, retentionMs } = settings
  return {
    ...(enabled === undefined ? {} : { congestion: enabled }),
    ...(baseBackoffMs === undefined ? {} : { base_backoff: baseBackoffMs * 1000 }),
    ...(maxBackoffMs === undefined ? {} : { max_backoff: maxBackoffMs * 1000 }),
    ...(snapshotMs === undefined ? {} : { snapshot: snapshotMs * 1000 }),
    ...(retentionMs === undefined ? {} : { keep_history: retentionMs * 1000 }),
  }
}

/** The other way round. */
export function congestionOf(values: SettingValues): CongestionSettings {
  return {
    enabled: values.congestion,
    baseBackoffMs: values.base_backoff / 1000,
    maxBackoffMs: values.max_backoff / 1000,
    snapshotMs: values.snapshot / 1000,
    retentionMs: values.keep_history / 1000,
  }
}
