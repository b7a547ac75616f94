/** What is wrong with a payload, as "its payload <problem>" says it. */
export type PayloadProblem = (problem: string, cause?: unknown) => never

/** The payload as JSON, no larger than it may be. */
export function payloadText(payload: unknown, maxPayloadBytes: number, fail: PayloadProblem): string {
  let json: string | undefined
  try {
    json = JSON.stringify(payload ?? null)
  } catch (error) {
    fail(`cannot be written as JSON (${(error as Error).message})`, error)
  }
  if (json === undefined) return fail('cannot be written as JSON')
  // A character is at most three bytes; counting them is only worth it near the bound.
  if (json.length * 3 > maxPayloadBytes) {
    const bytes = Buffer.byteLength(json)
    if (bytes > maxPayloadBytes) {
      fail(
        `has ${bytes} bytes, more than maxPayloadBytes (${maxPayloadBytes}); store it elsewhere and submit a reference`,
      )
    }
  }
  return json
}
