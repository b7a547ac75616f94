export { type ManualClock, type ManualClockOptions, manualClock } from './manual-clock.ts'
export { type StartRedisOptions, startRedis, type TestRedis } from './redis-server.ts'
export {
  startUpstream,
  type Upstream,
  type UpstreamCall,
  type UpstreamOptions,
  type UpstreamReport,
} from './upstream.ts'
