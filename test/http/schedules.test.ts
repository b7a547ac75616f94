import { describe, expect, it } from 'vitest'
import { useHttpServer } from './http-server.ts'

const server = useHttpServer()
const path = '/v1/queues/mail/schedules'
const nightly = { cron: '0 3 * * *', timeZone: 'Europe/Berlin', job: { type: 'SEND', tenant: 'acme' } }

describe('PUT', () => {
  it('makes a schedule, says the same of it again, and changes it', async () => {
    const made = await server.ask('PUT', `${path}/nightly`, nightly)
    const again = await server.ask('PUT', `${path}/nightly`, nightly)
    const changed = await server.ask('PUT', `${path}/nightly`, { every: '15m', missed: 'all', job: nightly.job })

    expect([made, again, changed].map(({ status }) => status)).toEqual([201, 200, 200])
    expect(made.body).toEqual({
      name: 'nightly',
      ...nightly,
      missed: 'one',
      nextAt: expect.any(Number),
      ticks: 0,
      missedTicks: 0,
    })
    expect(again.body).toEqual(made.body)
    expect(changed.body).toMatchObject({ everyMs: 900_000, anchor: 0, missed: 'all' })
    expect(changed.body).not.toHaveProperty('cron')
  })

  it.each([
    [{ ...nightly, cron: '0 99 * * *' }, 'cron', 'Invalid value for hour: 99'],
    [{ ...nightly, timeZone: 'Nowhere' }, 'timeZone', 'none that is called'],
    [{ every: 'often', job: nightly.job }, 'every', 'such as "15m"'],
    [{ ...nightly, job: { tenant: 'acme' } }, 'job.type', ''],
    [{ ...nightly, at: 1 }, 'at', ''],
  ])('names the field that cannot be used: %o', async (body, field, problem) => {
    const answer = await server.ask('PUT', `${path}/x`, body)

    expect(answer.status).toBe(400)
    expect(JSON.stringify(answer.body.errors)).toContain(field)
    expect(JSON.stringify(answer.body.errors)).toContain(problem.replaceAll('"', '\\"'))
    expect(await server.mail.schedules.get('x')).toBeUndefined()
  })
})

describe('GET', () => {
  it('lists by when schedules are due, in pages, with what is due soon', async () => {
    for (const name of ['a', 'b', 'c d:é']) await server.ask('PUT', `${path}/${encodeURIComponent(name)}`, nightly)
    await server.ask('PUT', `${path}/soon`, { every: '1m', job: nightly.job })

    const first = await server.ask('GET', `${path}?limit=2`)
    const second = await server.ask('GET', `${path}?limit=2&cursor=${encodeURIComponent(first.body.cursor)}`)
    const soon = await server.ask('GET', `${path}?dueWithin=60s`)

    const names = [first, second, soon].map(({ body }) => body.schedules.map(({ name }: { name: string }) => name))
    expect(names).toEqual([['soon', 'a'], ['b', 'c d:é'], ['soon']])
    expect(first.body).toMatchObject({ total: 4, dueSoon: 1, nextAt: first.body.schedules[0].nextAt })
    expect(second.body.cursor).toBeUndefined()
  })

  it('shows one, and says that there is no other', async () => {
    await server.ask('PUT', `${path}/nightly`, nightly)

    const [known, unknown] = [await server.ask('GET', `${path}/nightly`), await server.ask('GET', `${path}/other`)]

    expect([known.status, known.body.name, unknown.status]).toEqual([200, 'nightly', 404])
  })

  it('refuses a time or a cursor that is none', async () => {
    const answers = [await server.ask('GET', `${path}?dueWithin=soon`), await server.ask('GET', `${path}?cursor=x`)]

    expect(answers.map(({ status, body }) => [status, body.errors[0].path])).toEqual([
      [400, 'query.dueWithin'],
      [400, 'query.cursor'],
    ])
  })
})

it.each([
  ['GET', '', undefined],
  ['PUT', '', nightly],
  ['PATCH', '', { paused: true }],
  ['DELETE', '', undefined],
  ['POST', '/run', undefined],
] as const)('says of %s%s that the name in the path cannot be used', async (method, rest, body) => {
  const long = await server.ask(method, `${path}/${'x'.repeat(201)}${rest}`, body)
  const generated = await server.ask(method, `${path}/high:lane:1:tenant${rest}`, body)

  expect([long.status, generated.status]).toEqual([400, 400])
  expect(long.body.errors).toEqual([{ path: 'params.schedule', problem: 'must have 1 to 200 characters, not 201' }])
  expect(generated.body.errors).toEqual([
    { path: 'params.schedule', problem: expect.stringContaining('looks like a generated one') },
  ])
})

it('pauses, resumes, runs and removes a schedule', async () => {
  await server.ask('PUT', `${path}/nightly`, nightly)

  const paused = await server.ask('PATCH', `${path}/nightly`, { paused: true })
  const run = await server.ask('POST', `${path}/nightly/run`)
  const resumed = await server.ask('PATCH', `${path}/nightly`, { paused: false })
  const removed = await server.ask('DELETE', `${path}/nightly`)

  expect(paused.body).toMatchObject({ pausedSince: expect.any(Number) })
  expect(paused.body).not.toHaveProperty('nextAt')
  expect([run.status, run.body.isNew]).toEqual([201, true])
  expect(await server.mail.job(run.body.id, { tenant: 'acme' })).toMatchObject({ state: 'waiting', tenant: 'acme' })
  expect(resumed.body).toMatchObject({ nextAt: expect.any(Number) })
  expect(removed.body).toEqual({ done: true })
  for (const [method, rest] of [['DELETE', ''] as const, ['POST', '/run'] as const]) {
    expect((await server.ask(method, `${path}/nightly${rest}`)).status).toBe(404)
  }
})
