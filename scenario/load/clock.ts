/** Milliseconds of the machine's monotonic clock: one for all processes, the upstream recorder's included. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
