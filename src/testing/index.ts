export { type FinishedOptions, finished, type JobEnd } from './finished.ts'
export { type ManualClock, type ManualClockOptions, manualClock } from './manual-clock.ts'
export { type MemoryCall, type MemoryUpstream, type MemoryUpstreamOptions, memoryUpstream } from './memory-upstream.ts'
export { type RecordedRun, type RunRecorder, recordRuns } from './record-runs.ts'
export { type StartRedisOptions, startRedis, type TestRedis } from './redis-server.ts'
export { type HandlerRun, type RunHandlerOptions, runHandler } from './run-handler.ts'
export { type StartSluiceOptions, startSluice, type TestSluice } from './start-sluice.ts'
export {
  startUpstream,
  type Upstream,
  type UpstreamCall,
  type UpstreamOptions,
  type UpstreamReport,
} from './upstream.ts'
