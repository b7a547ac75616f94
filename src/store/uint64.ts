const MOST = 2n ** 64n - 1n
const digits = /^\d{1,20}$/

/** Whether Redis takes it for the cursor of a walk, or for a part of a stream's id: with 20 digits it may be too large. */
export function isUint64(text: string): boolean {
  return digits.test(text) && BigInt(text) <= MOST
}

/** Of an entry in a stream: `<ms>-<number>`, or only the first. */
export function isStreamId(text: string): boolean {
  const parts = text.split('-')
  return parts.length <= 2 && parts.every(isUint64)
}
