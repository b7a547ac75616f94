/** Why a tenant is parked or a job is delayed, and why a job died: the words that the scripts write and people filter by. */

/** Why a delayed job waits. */
export const delayReasons = ['upstream', 'retry', 'scheduled', 'unknown-type', 'stall'] as const
export type DelayReason = (typeof delayReasons)[number]

/** Why a tenant is parked or a job is delayed; `limit` parks tenants only. */
export type WaitReason = 'limit' | DelayReason

/** Why a job became a dead letter. */
export const deadReasons = ['failed', 'discarded', 'throttled', 'stalled', 'unknown-type', 'unreadable'] as const
export type DeadReason = (typeof deadReasons)[number]
