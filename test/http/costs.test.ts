import { describe, expect, it } from 'vitest'
import { useHttpServer } from './http-server.ts'

const server = useHttpServer({ limits: { queue: '100/s' } })

const jobsUrl = '/v1/queues/mail/jobs'
const actionsUrl = '/v1/queues/mail/actions'

/** Uploads an action of lines, one job each, or blank. */
async function upload(lines: readonly (object | '')[]) {
  const response = await server.app.inject({
    method: 'POST',
    url: `${actionsUrl}?tenant=acme&type=SEND`,
    headers: { 'content-type': 'application/x-ndjson' },
    payload: lines.map((line) => `${line === '' ? '' : JSON.stringify(line)}\n`).join(''),
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
    expect((await server.mail.actions()).actions).toEqual([])
  })

  it('is refused by the line or the place of its job, wherever that stands', async () => {
    const jobs = [{}, {}, { cost: 101 }, {}]

    const action = await server.ask('POST', actionsUrl, { tenant: 'acme', type: 'SEND', jobs })
    const lines = await upload(['', ...jobs.slice(0, 2), '', '', ...jobs.slice(2)])

    expect(action.body.errors).toMatchObject([{ path: 'body.jobs.2' }])
    expect(lines.body).toMatchObject({
      line: 6,
      detail: expect.stringContaining('Line 6 cannot be submitted: its cost'),
    })
  })

  it('leaves the name of its action free for the next', async () => {
    const named = { tenant: 'acme', action: 'sale', type: 'SEND' }

    const refused = await server.ask('POST', actionsUrl, { ...named, jobs: [{ cost: 101 }] })
    const taken = await server.ask('POST', actionsUrl, { ...named, jobs: [{ cost: 100 }] })

    expect([refused.status, taken.status]).toEqual([400, 202])
  })

  it('leaves an action that was there before', async () => {
    const named = { tenant: 'acme', action: 'sale', type: 'SEND', seal: false }
    await server.ask('POST', actionsUrl, { ...named, jobs: [] })

    await server.ask('POST', actionsUrl, { ...named, jobs: [{ cost: 101 }] })

    expect(await server.mail.action('sale', { tenant: 'acme' }).view()).toMatchObject({ isSealed: false, received: 0 })
  })
})
