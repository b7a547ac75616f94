import { constants, setPriority } from 'node:os'

/**
 * Puts a process before whatever else the machine does, as far as it may (root may): for what is measured in
 * milliseconds, so that the measure is not of its neighbours.
 */
export function goFirst(pid = 0): void {
  try {
    setPriority(pid, constants.priority.PRIORITY_HIGHEST)
  } catch {
    // Without the right to, it shares the machine like anyone.
  }
}
