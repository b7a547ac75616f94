import { describe, expect, it } from 'vitest'
import { useHttpServer } from './http-server.ts'

const server = useHttpServer({ limits: { queue: '100/s' } })

const jobsUrl = '/v1/queues/mail/jobs'
const actionsUrl = '/v1/queues/mail/actions'

/** Uploads an action of lines, one job each. */
async function upload(lines: readonly object[]) {
  const response = await server.app.inject({
    method: 'POST',
    url: `${actionsUrl}?tenant=acme&type=SEND`,
    headers: { 'content-type': 'application/x-ndjson' },
    payload: lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
  })
  return { status: response.statusCode, body: response.json() }
}

/** What the jobs cost that wait, in their order; the limit is lifted, so that it does not matter here. */
async function costs(): Promise<number[]> {
  await server.mail.limits.remove('queue')
  const jobs = await server.mail.claim(10)
  for (const job of jobs) await job.succeed()
  return jobs.map(({ cost }) => cost)
}

describe('the cost of a job', () => {
  it('is taken with one job', async () => {
    const { status } = await server.ask('POST', jobsUrl, { type: 'SEND', cost: 7 })

    expect(status).toBe(201)
    expect(await costs()).toEqual([7])
  })

  it('is taken with the jobs of an action as JSON', async () => {
    const jobs = [{ cost: 3 }, {}]

    const { status } = await server.ask('POST', actionsUrl, { tenant: 'acme', type: 'SEND', jobs })

    expect(status).toBe(202)
    expect(await costs()).toEqual([3, 1])
  })

  it('is taken with the lines of an upload', async () => {
    const { status, body } = await upload([{ cost: 3 }, {}, { cost: 2 }])

    expect(status).toBe(202)
    expect(body).toMatchObject({ accepted: 3 })
    expect(await costs()).toEqual([3, 1, 2])
  })
})

describe('a cost that is none', () => {
  it.each([0, 1.5, '3', 1_000_000_001])(
    '%j is refused by the name of its field, and nothing is stored',
    async (cost) => {
      const one = await server.ask('POST', jobsUrl, { type: 'SEND', cost })
      const action = await server.ask('POST', actionsUrl, { tenant: 'acme', type: 'SEND', jobs: [{}, { cost }] })
      const lines = await upload([{ cost }])

      expect(one).toMatchObject({ status: 400, body: { errors: [{ path: 'body.cost' }] } })
      expect(action).toMatchObject({ status: 400, body: { errors: [{ path: 'body.jobs.1.cost' }] } })
      expect(lines.status).toBe(400)
      expect(JSON.stringify(lines.body)).toContain('cost')
      expect(await server.mail.counts()).toMatchObject({ submitted: 0 })
    },
  )
})

describe('a cost that the limit could never grant', () => {
  it('is refused in the name of the limit, and nothing is stored', async () => {
    const one = await server.ask('POST', jobsUrl, { type: 'SEND', cost: 101 })
    const action = await server.ask('POST', actionsUrl, { tenant: 'acme', type: 'SEND', jobs: [{ cost: 101 }] })
    const lines = await upload([{ cost: 101 }])

    for (const { status, body } of [one, action, lines]) {
      expect(status).toBe(400)
      expect(JSON.stringify(body)).toContain('its cost of 101 is more than the limit')
    }
    expect(await server.mail.counts()).toMatchObject({ submitted: 0 })
  })
})
