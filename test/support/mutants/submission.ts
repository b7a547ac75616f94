import { EditableHistory, isUnder, must } from './editable-history.ts'
import { HIGHEST_FENCE, LATE, type Mutant } from './mutant.ts'

/** Jobs lost, run uninvited or miscounted: each breaks a promise of checks/submission.ts. */
export const SUBMISSION_MUTANTS: readonly Mutant[] = [
  // C1: no loss
  {
    name: 'an acknowledged job has no final state',
    check: 'C1',
    faults: true,
    break: (h) => h.without(h.only('final', h.jobWith('succeeded'))),
  },
  ...(['waiting', 'delayed', 'running', 'unknown'] as const).map(
    (state): Mutant => ({
      name: `an acknowledged job is ${state} at the end`,
      check: 'C1',
      faults: true,
      break: (h) => h.changeFinal(h.jobWith('succeeded'), state),
    }),
  ),
  {
    name: 'an acknowledged job leaves no trace at all',
    check: 'C1',
    faults: true,
    break: (h) => {
      const job = h.jobWith('succeeded')
      return h.events.filter((event) => !('job' in event && event.job === job))
    },
  },
  {
    name: 'a job counts as succeeded and no handler ended',
    check: 'C1',
    faults: true,
    break: (h) => h.without(h.only('end', h.jobWith('succeeded'))),
  },
  {
    name: 'a job counts as succeeded and its only handler failed',
    check: 'C1',
    faults: false,
    break: (h) => h.changeFinal(h.jobWith('dead'), 'succeeded'),
  },
  {
    name: 'a job of an unanswered submit is begun and never ends',
    check: 'C1',
    faults: true,
    break: (h) => h.changeFinal(h.submitted('unknown', { ran: true }), 'running'),
  },
  {
    name: 'a job of an unanswered submit is stored and never begun',
    check: 'C1',
    faults: true,
    break: (h) => h.changeFinal(h.submitted('unknown', { ran: false }), 'waiting'),
  },
  {
    name: 'an acknowledged job is lost with the worker that crashed',
    check: 'C1',
    faults: true,
    break: (h) => {
      const job = h.jobWith('crash', 'succeeded')
      const [, second] = h.starts(job)
      return new EditableHistory(h.events.filter((event) => !isUnder(second)(event))).changeFinal(job, 'running')
    },
  },
  // C2: no phantom
  {
    name: 'a job runs whose submit nobody called',
    check: 'C2',
    faults: true,
    break: (h) => {
      const call = h.callOf(h.jobWith('succeeded'))
      return h.events.filter((event) => !(event.kind === 'submit' && event.call === call))
    },
  },
  {
    name: 'a job runs that was refused',
    check: 'C2',
    faults: true,
    break: (h) => {
      const call = h.callOf(h.jobWith('succeeded'))
      return h.change((event) => event.kind === 'submit' && event.phase === 'ok' && event.call === call, {
        phase: 'fail',
      })
    },
  },
  {
    name: 'an unknown job starts',
    check: 'C2',
    faults: true,
    break: (h) => h.with({ ...must(h.of('start')[0], 'start'), job: 'phantom', fence: HIGHEST_FENCE, at: LATE }),
  },
  {
    name: 'an unknown job reaches the upstream',
    check: 'C2',
    faults: true,
    break: (h) => h.with({ ...must(h.of('effect')[0], 'effect'), job: 'phantom', at: LATE, until: LATE }),
  },
  {
    name: 'an unknown job is counted as succeeded',
    check: 'C2',
    faults: true,
    break: (h) => h.with({ ...must(h.of('final')[0], 'final'), job: 'phantom', state: 'succeeded' }),
  },
  {
    name: 'a refused job is kept',
    check: 'C2',
    faults: true,
    break: (h) => h.changeFinal(h.submitted('fail', { ran: false }), 'waiting'),
  },
  {
    name: 'a job runs before it is submitted',
    check: 'C2',
    faults: false,
    break: (h) => h.change((event) => event === h.only('start', h.jobWith('succeeded')), { at: 0 }),
  },
  // C13: counts
  {
    name: 'the queue counts one success too many',
    check: 'C13',
    faults: true,
    break: (h) => h.changeCounts(({ succeeded = 0 }) => ({ succeeded: succeeded + 1 })),
  },
  {
    name: 'the queue has forgotten a dead letter',
    check: 'C13',
    faults: true,
    break: (h) => h.changeCounts(({ failed = 0 }) => ({ failed: failed - 1 })),
  },
  ...(['waiting', 'delayed', 'running'] as const).map(
    (state): Mutant => ({
      name: `the queue counts a job as ${state} that is not there`,
      check: 'C13',
      faults: true,
      break: (h) => h.changeCounts(() => ({ [state]: 1 })),
    }),
  ),
]
