import { expect, it } from 'vitest'
import { discard } from '../../src/index.ts'
import { useHttpServer } from './http-server.ts'

// With grants that keep for so long that no machine comes too late for one, and gives its jobs back.
const limits = { queue: { kind: 'bucket', limit: 1_000, windowMs: 1_000, jitterMs: 1_000 } } as const
const server = useHttpServer({ limits, maxPending: 10, whenFull: 'error' })

it('show what became of jobs that the process ran: how long they waited and took, and how they ended', async () => {
  const { mail } = server
  mail.process('SEND', async (job) => (job.payload === 'bad' ? discard('bad') : undefined))
  const jobs = ['good', 'good', 'bad'].map((payload) => ({ payload }))
  const made = await server.ask('POST', '/v1/queues/mail/actions', { tenant: 'acme', type: 'SEND', jobs })
  expect(made.status).toBe(202)
  await server.sluice.action(made.body.id)?.finished()

  const { body } = await server.ask('GET', '/metrics')

  expect(body).toContain('# TYPE sluice_job_wait_seconds histogram')
  expect(body).toContain('sluice_job_wait_seconds_bucket{queue="mail",level="normal",le="+Inf"} 3')
  expect(body).toContain('sluice_job_run_seconds_count{queue="mail",type="SEND",outcome="succeeded"} 2')
  expect(body).toContain('sluice_job_run_seconds_count{queue="mail",type="SEND",outcome="dead"} 1')
  expect(body).toMatch(/^sluice_claim_jobs_sum\{queue="mail"\} 3$/m)
  expect(body).toContain('sluice_limit_granted_permits_total{queue="mail",scope="queue",limit="queue"} 3')
  expect(body).toMatch(/^sluice_script_duration_seconds_count\{script="submit-jobs"\} 1$/m)
  expect(body).toContain('sluice_tenant_jobs_waiting{queue="mail",tenant="other"} 0')
})

it('show who has how much waiting, when something is due, and what was refused', async () => {
  const { mail } = server
  const due = Date.now() + 3_600_000
  await mail.submit({ type: 'SEND', jobs: [{ tenant: 'acme' }, { tenant: 'acme' }, { tenant: 'rival', runAt: due }] })
  const jobs = Array.from({ length: 11 }, () => ({}))
  await expect(mail.submit({ type: 'SEND', jobs })).rejects.toMatchObject({ code: 'SLUICE_QUEUE_FULL' })

  const { body } = await server.ask('GET', '/metrics')

  expect(body).toContain('sluice_tenant_jobs_waiting{queue="mail",tenant="acme"} 2')
  expect(body).toContain(`sluice_next_due_timestamp_seconds{queue="mail",what="delayed"} ${due / 1000}`)
  expect(body).not.toContain('sluice_next_due_timestamp_seconds{queue="mail",what="parked"}')
  expect(body).toContain('sluice_submits_rejected_total{queue="mail",reason="queue-full"} 1')
})
