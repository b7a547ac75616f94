import { describe, expect, it } from 'vitest'
import { bearer, type HttpServer, keys, useHttpServer, type Who } from './http-server.ts'
import { bodyOf, documentedOperations, type Operation, pathOf } from './operations.ts'

const server = useHttpServer()
const operations = await documentedOperations()

type Entry = {
  /** The roles that may use it; `all` needs no key. */
  readonly roles: 'all' | readonly Who[]
  /** What the key of another tenant gets where the example is acme's: nothing to be seen, or only its own. */
  readonly rival?: 'hidden' | 'own'
}

const everyone = ['admin', 'operator', 'viewer', 'tenant'] as const
const workers = ['admin', 'operator', 'tenant'] as const
const staff = ['admin', 'operator'] as const

/**
 * Who may do what, written down a second time: a route that is not here fails, and so does one whose access was changed
 * without changing it here.
 */
const matrix: Readonly<Record<string, Entry>> = {
  getHealth: { roles: 'all' },
  getReadiness: { roles: 'all' },
  getOpenApi: { roles: 'all' },
  getDocs: { roles: 'all' },
  getMetrics: { roles: ['admin', 'operator', 'viewer'] },
  listQueues: { roles: everyone, rival: 'own' },
  getQueue: { roles: everyone, rival: 'own' },
  changeQueue: { roles: staff },
  getOverview: { roles: ['admin', 'operator', 'viewer'] },
  getCongestion: { roles: everyone, rival: 'own' },
  getCongestionHistory: { roles: ['admin', 'operator', 'viewer'] },
  getTenantCongestion: { roles: everyone, rival: 'hidden' },
  getTenantCongestionHistory: { roles: everyone, rival: 'hidden' },
  resetTenantCongestion: { roles: staff },
  followQueue: { roles: everyone, rival: 'own' },
  submitJob: { roles: workers },
  getJob: { roles: everyone, rival: 'hidden' },
  explainJob: { roles: everyone, rival: 'hidden' },
  runJobNow: { roles: workers, rival: 'hidden' },
  runDelayedJobs: { roles: staff },
  cancelJob: { roles: workers, rival: 'hidden' },
  submitAction: { roles: workers },
  listActions: { roles: everyone, rival: 'own' },
  getAction: { roles: everyone, rival: 'hidden' },
  getActionSummary: { roles: everyone, rival: 'hidden' },
  followAction: { roles: everyone, rival: 'hidden' },
  getResults: { roles: everyone, rival: 'hidden' },
  sealAction: { roles: workers, rival: 'hidden' },
  cancelAction: { roles: workers, rival: 'hidden' },
  retryFailedJobs: { roles: workers, rival: 'hidden' },
  addJobs: { roles: workers, rival: 'hidden' },
  listTenants: { roles: everyone, rival: 'own' },
  getTenant: { roles: everyone, rival: 'hidden' },
  unparkTenant: { roles: staff },
  unparkTenants: { roles: staff },
  explainTenant: { roles: everyone, rival: 'hidden' },
  changeTenant: { roles: staff },
  listLimits: { roles: everyone, rival: 'own' },
  changeLimits: { roles: staff },
  listDeadLetters: { roles: everyone, rival: 'own' },
  retryDeadLetter: { roles: workers, rival: 'hidden' },
  discardDeadLetter: { roles: workers, rival: 'hidden' },
  retryDeadLetters: { roles: workers },
  discardDeadLetters: { roles: workers },
  auditQueue: { roles: staff },
  listSchedules: { roles: ['admin', 'operator', 'viewer'] },
  getSchedule: { roles: ['admin', 'operator', 'viewer'] },
  setSchedule: { roles: staff },
  pauseSchedule: { roles: staff },
  removeSchedule: { roles: staff },
  runSchedule: { roles: staff },
  listAudit: { roles: ['admin'] },
}

/** They name no queue. */
const queueless = ['getMetrics', 'listQueues', 'listAudit']

/** What the examples of the document are about. Answers the key of acme's dead letter. */
async function fill({ mail }: HttpServer): Promise<string> {
  await mail.submit({ type: 'DIE', tenant: 'acme', maxRetries: 0 })
  for (const job of await mail.claim(1)) await job.fail(new Error('no such mailbox'))
  await mail.submit({ type: 'SEND', tenant: 'acme', id: 'order-17' })
  const action = { tenant: 'acme', action: 'summer-sale', type: 'SEND', keepResults: true, seal: false }
  await mail.submit({ ...action, jobs: [{ payload: 'acme’s own' }] })
  await mail.schedules.set('nightly', { every: '1d', job: { type: 'SEND', tenant: 'acme' } })
  const { letters } = await mail.deadLetters.list()
  return letters[0]?.key ?? ''
}

/** Asks as the document's example does; ends streams as soon as they have begun. */
async function ask({ url, operation, letter }: World, headers: Record<string, string>) {
  const body = operation.id === 'submitAction' ? exampleOfAction : bodyOf(operation)
  const isGivenId = ['getJob', 'explainJob', 'runJobNow', 'cancelJob'].includes(operation.id)
  const isForTenant = isGivenId && headers.authorization !== bearer('rival').authorization
  const path = pathOf(operation, { letter: encodeURIComponent(letter) }) + (isForTenant ? '?tenant=acme' : '')
  const controller = new AbortController()
  const response = await fetch(url + path, {
    method: operation.method,
    headers: { ...headers, ...(body ? { 'content-type': body.type } : {}) },
    ...(body ? { body: body.text } : {}),
    signal: controller.signal,
  })
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
  const text = isStream ? '' : await response.text()
  controller.abort()
  return { status: response.status, text }
}

/** Under a name of its own: the action of the fixture is there already. */
const exampleOfAction = {
  type: 'application/json',
  text: JSON.stringify({ tenant: 'acme', action: 'another', type: 'SEND', jobs: [{ payload: 1 }] }),
}

interface World {
  readonly url: string
  readonly letter: string
  readonly operation: Operation
}

/** One in which nobody has asked anything yet. */
async function freshWorld(id: string): Promise<World> {
  await server.end()
  server.begin()
  const letter = await fill(server)
  const { url } = await server.listen({ keys })
  const operation = operations.find((each) => each.id === id)
  if (!operation) throw new Error(`there is no operation ${id}`)
  return { url, letter, operation }
}

it('the table has every operation, and no other', () => {
  expect(operations.map(({ id }) => id).sort()).toEqual(Object.keys(matrix).sort())
})

describe.each(Object.entries(matrix))('%s', (id, { roles }) => {
  it(`is for ${roles === 'all' ? 'anybody' : roles.join(', ')} and no other`, async () => {
    let world = await freshWorld(id)
    for (const who of [undefined, 'expired', ...everyone] as const) {
      const { status, text } = await ask(world, who ? bearer(who) : {})

      const mayUse = roles === 'all' || (who !== undefined && roles.includes(who))
      const expected = mayUse ? 'served' : who === undefined || who === 'expired' ? 401 : 403
      expect([id, who, status < 300 ? 'served' : status], text).toEqual([id, who, expected])
      // What was changed must not decide what the next one gets.
      if (mayUse && world.operation.method !== 'GET') world = await freshWorld(id)
    }
  })
})

const ofTenants = Object.entries(matrix).filter(([, { rival }]) => rival !== undefined)

describe.each(ofTenants)('%s', (id, { rival }) => {
  it('shows nothing of one tenant to another', async () => {
    const { status, text } = await ask(await freshWorld(id), bearer('rival'))

    expect(status, text).toBe(rival === 'hidden' ? 404 : 200)
    if (rival === 'own') expect(text).not.toContain('acme')
  })
})

const ofQueues = Object.entries(matrix).filter(([id, { roles }]) => roles !== 'all' && !queueless.includes(id))

describe.each(ofQueues)('%s', (id) => {
  it('shows nothing of a queue to a key of other queues', async () => {
    expect((await ask(await freshWorld(id), bearer('elsewhere'))).status).toBe(404)
  })
})
