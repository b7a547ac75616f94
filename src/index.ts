export { type HttpRequestHandler, httpRequest } from './bulk/http-request/http-request.ts'
export type { HttpRequestOptions } from './bulk/http-request/options.ts'
export type { HttpRequestPayload } from './bulk/http-request/payload.ts'
export type { HttpRequestResult } from './bulk/http-request/result.ts'
export { defineConfig, type ServedQueue, type SluiceConfig } from './cli/define-config.ts'
export type { Permit } from './engine/acquirer.ts'
export type { Action, AddOptions, JobResult } from './engine/actions/action.ts'
export type { ActionInput, ActionJobInput, Webhook } from './engine/actions/action-input.ts'
export type { ActionError, ActionProgress, ActionSummary, ActionView } from './engine/actions/action-view.ts'
export type { ActionPage } from './engine/actions/actions.ts'
export type { Aggregate, AggregateContext, AggregateOptions } from './engine/actions/aggregate.ts'
export type { AuditOptions, AuditReport } from './engine/audit.ts'
export type { ClaimedJob } from './engine/claimed-job.ts'
export type { CongestionLevel } from './engine/congestion.ts'
export type {
  Backlog,
  CongestionControl,
  CongestionSnapshot,
  CongestionSummary,
  QueueSnapshot,
  TenantCongestion,
  TenantSnapshot,
} from './engine/congestion-control.ts'
export type { CongestionSettings } from './engine/congestion-options.ts'
export type { DeadLetter, DeadLetters } from './engine/dead-letters.ts'
export type { DelayedJobFilter, RunDelayedOptions, RunDelayedSummary } from './engine/delayed-jobs.ts'
export type { DrainOptions } from './engine/drain.ts'
export type { QueueEvent } from './engine/events.ts'
export { describeExplanation, type Explanation, type Gate, type WaitReason } from './engine/explain/explanation.ts'
export type { ChangeableSettings, FairnessSettings, QueueView } from './engine/fairness.ts'
export type { BulkInput, SubmitOptions, SubmittedJob } from './engine/intake.ts'
export type { GrantedBy, Job } from './engine/job.ts'
export type { Handler, JobContext } from './engine/job-run.ts'
export type { JobView } from './engine/job-view.ts'
export type { Answer } from './engine/lesson.ts'
export type { DeadLetterFilter, LetterSweep, SweepOptions, SweepProgress } from './engine/letter-sweep.ts'
export type { LimitControl } from './engine/limit-control.ts'
export type { LimitStatus } from './engine/limit-status.ts'
export type { Log, LogEntry } from './engine/log.ts'
export { discard, type Outcome, throttled } from './engine/outcome.ts'
export type { JobOwner, Middleware, Queue } from './engine/queue.ts'
export type { ProcessOptions, QueueOptions } from './engine/queue-options.ts'
export type { MissedRule, ScheduleInput, ScheduleJob } from './engine/schedules/schedule-input.ts'
export type { ScheduleView } from './engine/schedules/schedule-view.ts'
export type { ScheduleChange, SchedulePage, Schedules } from './engine/schedules/schedules.ts'
export type { SharedLimit, SharedLimitStatus } from './engine/shared-limit.ts'
export type { AcquireOptions, SharedLimits } from './engine/shared-limits.ts'
export type { JobInput } from './engine/submission.ts'
export type { SubmitSummary } from './engine/submitter.ts'
export type { TenantControl, TenantSettings, TenantView } from './engine/tenant-control.ts'
export * from './errors.ts'
export type { LimitsOf, LimitsOption, SharedLimitsOf } from './limits/attachment.ts'
export type {
  BucketDefinition,
  ConcurrencyDefinition,
  LimitDefinition,
  QuotaDefinition,
  WindowDefinition,
} from './limits/definition.ts'
export type { Shared } from './limits/shared.ts'
export type { Pushback } from './limits/upstream-answer.ts'
export { type LimitOptions, Sluice, type SluiceOptions } from './sluice.ts'
export type { Level } from './store/names.ts'
export type { JobErrorRecord } from './store/record.ts'
export type { RedisAddress, RedisCluster, RedisNode, RedisOptions, RedisSentinels } from './store/redis.ts'
export type { Difference } from './store/scripts/audit-tenant.ts'
export type { CancelReply } from './store/scripts/cancel-job.ts'
export type { ActionState } from './store/scripts/open-action.ts'
export type { ActionCounts } from './store/scripts/read-actions.ts'
export type { QueueCounts } from './store/scripts/read-counts.ts'
export type { JobState } from './store/scripts/read-job.ts'
export type { RunNowReply } from './store/scripts/run-delayed-job.ts'
export type { LimitScope } from './store/settings.ts'
