import { isSluiceError } from '../errors.ts'

/** Whether a call failed because Redis did not answer. */
export function isStoreSilent(error: unknown): boolean {
  return isSluiceError(error) && (error.code === 'SLUICE_STORE_UNAVAILABLE' || error.code === 'SLUICE_OUTCOME_UNKNOWN')
}

/**
 * Whether a call failed because Redis did not answer, or is not this process's any more: that passes, or is meant. Any other
 * error (a right that is missing, a script that fails) stays until somebody does something about it.
 */
export function isStoreAway(error: unknown): boolean {
  return isStoreSilent(error) || (isSluiceError(error) && error.code === 'SLUICE_CLOSED')
}
