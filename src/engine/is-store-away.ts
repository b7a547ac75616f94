import { isSluiceError } from '../errors.ts'

const codes: ReadonlySet<string> = new Set(['SLUICE_STORE_UNAVAILABLE', 'SLUICE_OUTCOME_UNKNOWN', 'SLUICE_CLOSED'])

/**
 * Whether a call failed because Redis did not answer, or is not this process's any more: that passes, or is meant. Any other
 * error (a right that is missing, a script that fails) stays until somebody does something about it.
 */
export function isStoreAway(error: unknown): boolean {
  return isSluiceError(error) && codes.has(error.code)
}
