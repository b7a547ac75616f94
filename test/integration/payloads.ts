/** That many jobs, with 1, 2, … as payload. */
export function payloads(count: number): { payload: number }[] {
  return Array.from({ length: count }, (_, index) => ({ payload: index + 1 }))
}
