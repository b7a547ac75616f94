import { expect, it } from 'vitest'
import { jobsOf, record } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { explainJob } from './explain-job.ts'

const store = useScriptStore()

function explain(jobKey: string) {
  return explainJob(store.requests(), { jobKey, tenant: '', action: '', digest: '' }, store.nowUs)
}

it('says where a waiting job stands, and changes nothing', async () => {
  await store.submit('a', 3)
  await store.submit('a', 1, { lane: 'other' })

  const { reply, changes } = await store.changesOf(() => explain('normal:default:1000000002:a'))

  expect(reply?.facts.job).toEqual({
    key: 'normal:default:1000000002:a',
    level: 'normal',
    state: 'waiting',
    attempts: 0,
    stalls: 0,
    throttles: 0,
    created: 'rs',
    lane: { ahead: 2, lanes: 2, lanes_before: 0 },
  })
  expect(changes).toEqual({})
})

it('counts what came back among those that go first', async () => {
  await store.submit('a', 3)
  const claim = await store.claim(1)
  await store.finish(claim, { outcome: 'released' })
  const [returned] = jobsOf(claim)

  const first = await explain(returned?.jobKey ?? '')
  const second = await explain('normal:default:1000000001:a')

  expect(first?.facts.job.lane).toMatchObject({ ahead: 0 })
  expect(second?.facts.job.lane).toMatchObject({ ahead: 1 })
})

it('says who runs a job, since when, and until when it is leased', async () => {
  await store.submit('a', 1)
  await store.claim(1, {}, 'worker')

  expect((await explain('normal:default:1000000000:a'))?.facts.job).toMatchObject({
    state: 'running',
    client: 'worker',
    fence: '1000000000',
    claimed: 1_000_000,
    lease: 1_015_000,
    is_canceling: false,
  })
})

it('says why a job is delayed and until when', async () => {
  await store.submit('a', 0, { kind: 'later', entries: ['+5000000', '', record(1)] })
  await store.submit('b', 1)
  const claim = await store.claim(1)
  await store.finish(claim, { outcome: 'retry', delayMs: 3_000, error: '{}' })

  const scheduled = await explain('normal:default:01000000000:a')
  const retried = await explain(jobsOf(claim)[0]?.jobKey ?? '')

  expect(scheduled?.facts.job).toMatchObject({ state: 'delayed', due: 1_005_000, created: 'rs' })
  expect(scheduled?.facts.job.reason).toBeUndefined()
  expect(retried?.facts.job).toMatchObject({ state: 'delayed', due: 1_003_000, reason: 'retry', attempts: 1 })
})

it('knows nothing of a job that never was', async () => {
  expect(await store.outOfMemory(() => explain('normal:default:1:a'))).toBeUndefined()
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(explain('normal:default:1:a')).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})
