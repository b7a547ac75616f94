import { expect, it } from 'vitest'
import { systemClock } from '../clock.ts'
import { StoreUnavailableError } from '../errors.ts'
import type { Requests } from '../store/requests.ts'
import { readSettings, submitJobs } from '../store/scripts.generated.ts'
import { Packer } from './submission.ts'
import { Submitter } from './submitter.ts'

it('says that the queue is full, and by which bound, though Redis goes away before it has told that', async () => {
  const declared = JSON.stringify({ values: { max_pending: 5, max_pending_tenant: 0 } })
  let losses = 2
  const replies = new Map<unknown, () => unknown[]>([
    [submitJobs, () => ['accepted', 0, 0, ['0'], [0, 0], []]],
    [
      readSettings,
      () => {
        if (losses-- > 0) throw new StoreUnavailableError({ reason: 'it was restarted', outcome: 'not-sent' })
        return ['settings', declared, '{}', '0']
      },
    ],
  ])
  const requests = { run: async (script: unknown) => replies.get(script)?.() } as unknown as Requests
  const submitter = new Submitter({
    clock: systemClock,
    requests,
    queue: 'q',
    whenFull: 'error',
    basePriority: undefined,
    isClosed: () => false,
  })

  const submitted = submitter.one(new Packer({}, 1_000).pack({ type: 'T' }, undefined, 0))

  await expect(submitted).rejects.toMatchObject({ code: 'SLUICE_QUEUE_FULL', maxPending: 5 })
})
