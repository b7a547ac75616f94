import { isUnder, type Of } from './editable-history.ts'
import { LATE, type Mutant } from './mutant.ts'

/** Jobs too early, too late or out of order: each breaks a promise of checks/timing.ts. */
export const TIMING_MUTANTS: readonly Mutant[] = [
  // C11: never early
  {
    name: 'a delayed job starts early',
    check: 'C11',
    faults: false,
    break: (h) => {
      const { job, at } = h.delayed(400)
      return h.change((event) => event === h.only('start', job), { at: at + 390 })
    },
  },
  // C12: order
  {
    name: 'the next job of an ordered lane does not wait for the one before',
    check: 'C12',
    faults: false,
    break: (h) => {
      const [first, second] = h.laneMates('ordered')
      return h.change((event) => event === h.only('start', second), { at: h.only('start', first).at + 1 })
    },
  },
  {
    name: 'the jobs of a lane are claimed in another order than submitted',
    check: 'C12',
    faults: false,
    break: (h) => {
      const [first, second] = h.laneMates('plain').map((job) => h.only('start', job)) as [Of<'start'>, Of<'start'>]
      return h.swapFences(first, second)
    },
  },
  {
    name: 'the jobs of one claim start in another order than they stand in their lane',
    check: 'C12',
    faults: false,
    break: (h) => {
      const [first, second] = h.laneMates('plain').map((job) => h.only('start', job)) as [Of<'start'>, Of<'start'>]
      return h.change(isUnder(second), (event) => ({
        fence: first.fence,
        ...(event === second && { at: first.at - 1 }),
      }))
    },
  },
  // C14: liveness
  {
    name: 'a job ends long after the last fault',
    check: 'C14',
    faults: true,
    break: (h) => {
      const job = h.jobWith('succeeded')
      return h.change(
        (event) => ['start', 'end', 'outcome'].includes(event.kind) && 'job' in event && event.job === job,
        (event) => ({ at: event.at + LATE }),
      )
    },
  },
  {
    name: 'a delayed job never starts',
    check: 'C14',
    faults: false,
    break: (h) => {
      const { job } = h.delayed(400)
      return h.events.filter((event) => !('job' in event && event.job === job && event.kind !== 'final'))
    },
  },
]
