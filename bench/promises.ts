/** What a figure of the JSON line must reach, and what it aims at. */
export interface Promised {
  readonly key: string
  readonly label: string
  readonly atLeast?: number
  readonly atMost?: number
  readonly aim?: number
}

/** The figures that are promised, in the order of the table. Everything else the measures give is printed below it. */
export const PROMISED: readonly Promised[] = [
  { key: 'submitRatioBullmq', label: 'submit, one tenant / BullMQ', atLeast: 15, aim: 20 },
  { key: 'submitRatio1000Tenants', label: 'submit, 1,000 tenants mixed / BullMQ', atLeast: 5, aim: 10 },
  { key: 'processRatioBullmq', label: 'no-op jobs/s / BullMQ', atLeast: 5, aim: 8 },
  { key: 'processRatioGroupmq', label: 'no-op jobs/s / GroupMQ', atLeast: 5, aim: 8 },
  { key: 'processRatioLimited1000', label: '1,000 limited tenants / GroupMQ without limits', atLeast: 3, aim: 5 },
  { key: 'redisCpuRatioBullmq', label: 'Redis CPU a no-op job / BullMQ', atMost: 0.2, aim: 0.1 },
  { key: 'redisCpuRatioHandlers50', label: 'Redis CPU, handlers 20–180 ms, 50 hands / BullMQ', atMost: 0.5, aim: 0.25 },
  { key: 'redisCpuRatioHandlers300', label: 'the same, 300 hands', atMost: 0.5, aim: 0.25 },
  { key: 'bytesPerJobRatioBullmq', label: 'bytes a waiting job / BullMQ', atMost: 0.5 },
  { key: 'bytesPerJobRatioGroupmq', label: 'bytes a waiting job / GroupMQ', atMost: 0.5 },
  { key: 'bytesPerJob', label: 'bytes a waiting job', atMost: 125 },
  { key: 'bytesPerJobGivenIds', label: 'bytes a waiting job, ids given', atMost: 250 },
  { key: 'bytesPerJobGivenIdsRatioBullmq', label: 'the same / BullMQ without given ids', atMost: 1 },
  { key: 'claimCost100kOver10Tenants', label: 'claim cost, 100,000 tenants / 10', atMost: 1.5, aim: 1.2 },
  { key: 'claimCost100kParkedOver10Tenants', label: 'the same, 90 % parked', atMost: 1.5, aim: 1.2 },
  { key: 'upstreamMaxOverLimit', label: 'largest count in a sliding second / limit', atMost: 1 },
  { key: 'limitUtilisation', label: 'limit used', atLeast: 0.9 },
  { key: 'limiterRatioRateLimiterFlexible', label: 'limiter decisions/s / rate-limiter-flexible', atLeast: 1.5 },
  { key: 'limiterHalfRefusedRatioRateLimiterFlexible', label: 'the same, half of them refused', atLeast: 1.5 },
  { key: 'limiterRatioBottleneck', label: 'limiter decisions/s / Bottleneck', atLeast: 1 },
  { key: 'throttleMovesPerJob', label: 'moves a throttled job', atMost: 0.02, aim: 0 },
  { key: 'overIdealPercent', label: 'time over ideal, %', atMost: 10, aim: 6 },
  { key: 'recoverySeconds', label: 'kill −9 of a worker → its job runs again, s', atMost: 16 },
  { key: 'idleRequestsPerMinute', label: 'requests a minute while idle', atMost: 12 },
  { key: 'smallTenantOverIdeal', label: 'small tenant / ideal max-min', atMost: 1.3 },
  { key: 'jain', label: 'Jain index, worst 10 s', atLeast: 0.99 },
  { key: 'floodSmallTenantOverIdeal', label: 'small tenants during a flood / ideal', atMost: 1.3 },
  { key: 'floodProducerGrowthMegabytes', label: 'growth of the flooding process, MB', atMost: 100 },
  { key: 'floodSlowestScriptCpuMs', label: 'longest script during a flood, ms of processor time', atMost: 5 },
]

export function isKept(promised: Promised, figure: number): boolean {
  return figure >= (promised.atLeast ?? -Infinity) && figure <= (promised.atMost ?? Infinity)
}
