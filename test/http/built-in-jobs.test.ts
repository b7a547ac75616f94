import { describe, expect, it } from 'vitest'
import { useHttpServer } from './http-server.ts'

const server = useHttpServer()

const jobsUrl = '/v1/queues/mail/jobs'
const actionsUrl = '/v1/queues/mail/actions'
const call = { url: 'https://api.example.com/' }

async function upload(url: string, lines: readonly object[]) {
  const response = await server.app.inject({
    method: 'POST',
    url,
    headers: { 'content-type': 'application/x-ndjson' },
    payload: lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
  })
  return { status: response.statusCode, body: response.json() }
}

describe('a job of type http.request that can never be sent', () => {
  it('is refused when it is submitted alone, with what is wrong', async () => {
    const wrong = await server.ask('POST', jobsUrl, { type: 'http.request', payload: 1 })
    const right = await server.ask('POST', jobsUrl, { type: 'http.request', payload: call })

    expect(wrong.status).toBe(400)
    expect(JSON.stringify(wrong.body)).toContain('The payload must be an object such as')
    expect(right.status).toBe(201)
  })

  it('is refused with its action, of which nothing is made', async () => {
    const jobs = [{ payload: call }, { payload: { url: 'ftp://api.example.com/' } }]

    const { status, body } = await server.ask('POST', actionsUrl, { tenant: 'acme', type: 'http.request', jobs })

    expect(status).toBe(400)
    expect(JSON.stringify(body)).toContain('must start with http:// or https://')
    expect((await server.mail.actions({ tenant: 'acme' })).actions).toEqual([])
  })

  it('is refused in a stream by its line, and what came before it stays', async () => {
    const { status, body } = await upload(`${actionsUrl}?tenant=beta&type=http.request&action=calls`, [
      { payload: call },
      { payload: 1 },
    ])

    expect(status).toBe(400)
    expect(JSON.stringify(body)).toContain('line 2')
    expect(body).toMatchObject({ accepted: 1 })
  })

  it('is refused as the job of a schedule', async () => {
    const schedule = { cron: '0 3 * * *', job: { type: 'http.request', payload: 'no' } }

    const { status, body } = await server.ask('PUT', '/v1/queues/mail/schedules/nightly', schedule)

    expect(status).toBe(400)
    expect(JSON.stringify(body)).toContain('The payload must be an object such as')
  })

  it('is refused as the edited payload of a dead letter, which stays', async () => {
    await server.mail.submit({ type: 'http.request', payload: call, maxRetries: 0 })
    for (const job of await server.mail.claim(1)) await job.fail(new Error('gone'))
    const { body } = await server.ask('GET', '/v1/queues/mail/dead-letters')
    const retry = `/v1/queues/mail/dead-letters/${encodeURIComponent(body.letters[0].key)}/retry`

    const wrong = await server.ask('POST', retry, { payload: { url: 'ftp://api.example.com/' } })
    const right = await server.ask('POST', retry, { payload: { url: 'https://other.example.com/' } })

    expect(wrong.status).toBe(400)
    expect(JSON.stringify(wrong.body)).toContain('must start with http:// or https://')
    expect(right.body).toEqual({ done: true })
  })

  it('is no concern of other types', async () => {
    expect(await server.ask('POST', jobsUrl, { type: 'SEND', payload: 1 })).toMatchObject({ status: 201 })
  })
})
