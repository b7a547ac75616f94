import type { HistoryEvent } from '../history.ts'
import { CHECKED } from '../history-generator.ts'
import { EditableHistory, higherFence, isUnder, must } from './editable-history.ts'
import { HIGHEST_FENCE, LATE, type Mutant } from './mutant.ts'

/** Jobs run or ended by somebody they were not leased to: each breaks a promise of checks/delivery.ts. */
export const DELIVERY_MUTANTS: readonly Mutant[] = [
  // C3: justified redelivery
  {
    name: "a crashed worker's job runs again before its lease ran out",
    check: 'C3',
    faults: true,
    break: (h) => {
      const [first, second] = h.starts(h.jobWith('crash', 'succeeded'))
      return h.change((event) => event === second, { at: first.at + CHECKED.leaseMs / 2 })
    },
  },
  {
    name: 'a job runs again although no fault hit its worker',
    check: 'C3',
    faults: true,
    break: (h) => {
      const [first] = h.starts(h.jobWith('crash', 'succeeded'))
      return h.events.filter((event) => !(event.kind === 'nemesis' && event.worker === first.process))
    },
  },
  {
    name: 'a job whose fault hit another worker runs again',
    check: 'C3',
    faults: true,
    break: (h) => {
      const [first] = h.starts(h.jobWith('crash', 'succeeded'))
      return h.change((event) => event.kind === 'nemesis' && event.worker === first.process, { worker: 'worker-else' })
    },
  },
  {
    name: 'a job that has succeeded runs once more',
    check: 'C3',
    faults: false,
    break: (h) => {
      const start = h.only('start', h.jobWith('succeeded'))
      return h.with(...h.run(start.job, { at: LATE, fence: higherFence(start), accepted: false }))
    },
  },
  ...(['failed', 'throttled', 'released'] as const).map(
    (setback): Mutant => ({
      name: `a job runs again and was never ${setback}`,
      check: 'C3',
      faults: false,
      break: (h) => {
        const [first] = h.starts(h.jobWith(setback, 'succeeded'))
        return h.events.filter((event) => !(isUnder(first)(event) && ['end', 'outcome'].includes(event.kind)))
      },
    }),
  ),
  {
    name: 'a renewed job runs again when its first lease would have ended',
    check: 'C3',
    faults: true,
    break: (h) => {
      const [first, second] = h.starts(h.jobWith('crash', 'succeeded'))
      const renew: HistoryEvent = { ...first, kind: 'renew', at: first.at + 200 }
      return [...h.events, renew].map((event) => (event === second ? { ...event, at: first.at + 1_050 } : event))
    },
  },
  // C4: lease exclusion
  {
    name: 'a lease is given while another is valid, by the time of Redis',
    check: 'C4',
    faults: true,
    break: (h) => {
      const job = h.jobWith('crash', 'succeeded')
      const [first] = h.of('claim', job)
      return h.change((event) => event.kind === 'claim' && event.job === job && event !== first, {
        from: must(first?.until, 'a lease') - 1,
      })
    },
  },
  {
    name: 'a zombie ends the job under its old fence',
    check: 'C4',
    faults: true,
    break: (h) => {
      const [first] = h.starts(h.jobWith('zombie', 'succeeded'))
      return h.change((event) => event.kind === 'outcome' && isUnder(first)(event), { answer: 'accepted', at: LATE })
    },
  },
  {
    name: 'a zombie gives the job back under its old fence',
    check: 'C4',
    faults: true,
    break: (h) => {
      const [first] = h.starts(h.jobWith('zombie', 'succeeded'))
      return h.change(
        (event) => (event.kind === 'end' || event.kind === 'outcome') && isUnder(first)(event),
        (event) => ({ result: 'failed', at: LATE, ...(event.kind === 'outcome' && { answer: 'accepted' }) }),
      )
    },
  },
  {
    name: 'two workers run a job at the same time',
    check: 'C4',
    faults: false,
    break: (h) => {
      const long = must(
        h.of('start').find((start) => h.of('renew', start.job).length > 0),
        'long run',
      )
      return h.with(...h.run(long.job, { at: long.at + 50, fence: higherFence(long), accepted: false }))
    },
  },
  {
    name: 'a retry starts while the run before still goes on',
    check: 'C4',
    faults: false,
    break: (h) => {
      const [first, second] = h.starts(h.jobWith('failed', 'succeeded'))
      return h
        .change((event) => event.kind === 'end' && isUnder(first)(event), { at: second.at + 500 })
        .map((event) => (event.kind === 'outcome' && isUnder(first)(event) ? { ...event, at: second.at + 501 } : event))
    },
  },
  // C5: fences
  {
    name: 'two deliveries have one fence',
    check: 'C5',
    faults: false,
    break: (h) => {
      const [first, second] = h.starts(h.jobWith('failed', 'succeeded'))
      return h.change(isUnder(second), { fence: first.fence })
    },
  },
  {
    name: 'a claim is delivered to two hands',
    check: 'C5',
    faults: false,
    break: (h) => {
      const start = h.only('start', h.jobWith('succeeded'))
      return h.with({ ...start, process: 'worker-extra', at: start.at + 0.1 })
    },
  },
  {
    name: 'the fence of a retry is lower than that of the run before',
    check: 'C5',
    faults: false,
    break: (h) => {
      const [first, second] = h.starts(h.jobWith('failed', 'succeeded'))
      return h.swapFences(first, second)
    },
  },
  {
    name: 'an older fence is accepted after a newer one',
    check: 'C5',
    faults: true,
    break: (h) => {
      const [first] = h.starts(h.jobWith('zombie', 'succeeded'))
      return h.change((event) => event.kind === 'outcome' && isUnder(first)(event), { answer: 'accepted', at: LATE })
    },
  },
  {
    name: 'an end is accepted under a fence nobody was given',
    check: 'C5',
    faults: false,
    break: (h) => h.change((event) => event === h.only('outcome', h.jobWith('succeeded')), { fence: HIGHEST_FENCE }),
  },
  {
    name: 'the upstream is called under a fence nobody was given',
    check: 'C5',
    faults: false,
    break: (h) => h.change((event) => event === h.only('effect', h.jobWith('succeeded')), { fence: HIGHEST_FENCE }),
  },
  // C6: one terminal state
  {
    name: 'a completion is counted twice',
    check: 'C6',
    faults: false,
    break: (h) => {
      const outcome = h.only('outcome', h.jobWith('succeeded'))
      return h.with({ ...outcome, at: outcome.at + 1 })
    },
  },
  {
    name: 'two fences complete one job',
    check: 'C6',
    faults: true,
    break: (h) => {
      const [first] = h.starts(h.jobWith('zombie', 'succeeded'))
      return h.change((event) => event.kind === 'outcome' && isUnder(first)(event), { answer: 'accepted' })
    },
  },
  {
    name: 'a job is in two final states',
    check: 'C6',
    faults: false,
    break: (h) => h.with({ ...h.only('final', h.jobWith('succeeded')), state: 'failed' }),
  },
  {
    name: 'a job that was accepted as succeeded is a dead letter',
    check: 'C6',
    faults: false,
    break: (h) => h.changeFinal(h.jobWith('succeeded'), 'failed'),
  },
  {
    name: 'a job that was accepted as dead counts as succeeded',
    check: 'C6',
    faults: false,
    break: (h) => h.changeFinal(h.jobWith('dead'), 'succeeded'),
  },
  {
    name: 'a job runs after its end was accepted',
    check: 'C6',
    faults: false,
    break: (h) => {
      const start = h.only('start', h.jobWith('succeeded'))
      return h.with(...h.run(start.job, { at: LATE, fence: higherFence(start) }))
    },
  },
  {
    name: 'a dead letter succeeded in its last run, where outcomes are not seen',
    check: 'C6',
    faults: false,
    break: (h) => {
      const job = h.jobWith('succeeded')
      return new EditableHistory(h.without(h.only('outcome', job))).changeFinal(job, 'failed')
    },
  },
]
