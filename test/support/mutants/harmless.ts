import type { HistoryEvent } from '../history.ts'
import type { EditableHistory } from './editable-history.ts'

/** Changes that leave a history correct: what was not heard, not what was not done. */
export const HARMLESS: readonly { name: string; change: (history: EditableHistory) => HistoryEvent[] }[] = [
  {
    name: 'the answer to a submit was not heard',
    change: (h) => {
      const call = h.callOf(h.jobWith('succeeded'))
      return h.change((event) => event.kind === 'submit' && event.phase === 'ok' && event.call === call, {
        phase: 'unknown',
      })
    },
  },
  {
    name: 'a producer died before it heard the answer',
    change: (h) => {
      const call = h.callOf(h.jobWith('succeeded'))
      return h.events.filter((event) => !(event.kind === 'submit' && event.phase === 'ok' && event.call === call))
    },
  },
  {
    name: 'outcomes were not seen',
    change: (h) => h.events.filter(({ kind }) => kind !== 'outcome'),
  },
  {
    name: 'leases were not seen',
    change: (h) => h.events.filter(({ kind }) => kind !== 'claim' && kind !== 'renew'),
  },
  {
    name: 'the files were read in another order',
    change: (h) => [...h.events].reverse(),
  },
]
