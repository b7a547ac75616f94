import { describe, expect, it } from 'vitest'
import { type ServerProcess, serveForAll } from './server-process.ts'

let server: ServerProcess

serveForAll(['--queue', 'web=100/s,mail'], (started) => {
  server = started
})

describe('sluice tenants', () => {
  it('weighs, limits, pauses and resumes a tenant, and shows how it stands', async () => {
    const [set] = await server.data(['tenants', 'set', 'acme', '-q', 'web', '--weight', '3', '--rate', '5/s'])
    const [paused] = await server.data(['tenants', 'pause', 'acme', '-q', 'web'])
    await server.submitJob('web', { tenant: 'acme' })
    const listed = await server.data(['tenants', 'ls', '-q', 'web'])
    const [resumed] = await server.data(['tenants', 'resume', 'acme', '-q', 'web'])

    expect(set).toMatchObject({ tenant: 'acme', weight: 3, limits: [{ scope: 'tenant', limit: 5 }] })
    expect(paused).toMatchObject({ state: 'paused' })
    expect(listed).toMatchObject([{ tenant: 'acme', state: 'paused', waiting: 1 }])
    expect(resumed).toMatchObject({ tenant: 'acme', weight: 3 })
  })

  it('takes a rate and a level off again', async () => {
    const set = (...args: string[]) => server.data(['tenants', 'set', 'globex', '-q', 'web', ...args])

    const [own] = await set('--rate', '5/s', '--level', 'low')
    const [without] = await set('--rate', 'none', '--level', 'none')

    expect(own).toMatchObject({ levelOverride: 'low', limits: [{ scope: 'tenant', limit: 5 }] })
    expect(without).toMatchObject({ tenant: 'globex', limits: [] })
    expect(without).not.toHaveProperty('levelOverride')
  })

  it('says what can be set, when nothing or nonsense is to be', async () => {
    const nothing = await server.sluice(['tenants', 'set', 'acme', '-q', 'web'])
    const nonsense = await server.sluice(['tenants', 'set', 'acme', '-q', 'web', '--base-priority', 'first'])

    expect(nothing).toMatchObject({ code: 2, stdout: '' })
    expect(nothing.stderr).toBe('sluice: say what to set: --weight, --base-priority, --level or --rate\n')
    expect(nonsense).toMatchObject({ code: 2, stdout: '' })
    expect(nonsense.stderr).toMatch(/^sluice: .*'first' is invalid\. It must be a number from .*\n$/)
  })

  it('is a table for people', async () => {
    const { stdout } = await server.sluice(['tenants', 'get', 'nobody', '-q', 'web'])

    expect(stdout).toMatch(
      /^tenant +state +waiting .* congestion +speed +backoff +all started in +throttles +per job\n/,
    )
    expect(stdout).toMatch(/\nnobody +idle +0 .* NONE +\d+\/s +1 s +0 ms +0 +0\n$/)
  })

  it('shows how far a tenant is behind', async () => {
    const [tenant] = await server.data(['tenants', 'get', 'nobody', '-q', 'web'])

    expect(tenant).toMatchObject({
      tenant: 'nobody',
      state: 'idle',
      congestion: { level: 'NONE', backoffMs: 1_000, etaMs: 0, throttles: 0, averageThrottlesPerJob: 0 },
    })
  })
})

describe('sluice limits', () => {
  it('lists, changes and resets limits while the queue runs', async () => {
    const before = await server.data(['limits', 'ls', '-q', 'web'])
    await server.data(['limits', 'set', 'queue', '50/s', '-q', 'web'])
    await server.data(['limits', 'set', 'low', '5/s', '-q', 'web'])
    const changed = await server.data(['limits', 'ls', '-q', 'web'])
    const [reset] = await server.data(['limits', 'reset', 'queue', '-q', 'web'])

    expect(before).toMatchObject([{ name: 'queue', limit: 100 }])
    expect(changed).toMatchObject([
      { name: 'queue', limit: 50 },
      { name: 'low', limit: 5 },
    ])
    expect(reset).toMatchObject({ limits: [{ name: 'queue', limit: 100 }, { name: 'low' }] })
  })

  it('takes a window and a quota as JSON, and lists them as they stand', async () => {
    const day = { kind: 'window', limit: 1_000, windowMs: 86_400_000, timeZone: 'Europe/Berlin' }
    const tokens = { kind: 'quota', threshold: 10, pool: ['first', 'second'] }

    await server.data(['limits', 'set', 'daily', JSON.stringify(day), '-q', 'web'])
    await server.data(['limits', 'set', 'tokens', JSON.stringify(tokens), '-q', 'web'])
    const listed = await server.data<{ name: string }>(['limits', 'ls', '-q', 'web'])
    const { stdout } = await server.sluice(['limits', 'ls', '-q', 'web'])
    for (const name of ['daily', 'tokens']) await server.data(['limits', 'reset', name, '-q', 'web'])
    const after = await server.data<{ name: string }>(['limits', 'ls', '-q', 'web'])

    const found = (name: string) => listed.find((limit) => limit.name === name)
    expect(found('daily')).toMatchObject({ scope: 'queue', kind: 'window', limit: 1_000, used: 0, remaining: 1_000 })
    // Nothing is known of either token: each may ask once.
    expect(found('tokens')).toMatchObject({ scope: 'queue', kind: 'quota', limit: 0, used: 0, remaining: 2 })
    expect(stdout).toMatch(/^daily +queue +window +1,000 +0 +1,000 /m)
    expect(stdout).toMatch(/^tokens +queue +quota +0 +0 +2\b/m)
    expect(after.map(({ name }) => name)).not.toContain('daily')
    expect(after.map(({ name }) => name)).not.toContain('tokens')
  })

  it.each([
    ['{"kind":"window","limit":10}', /^sluice: .*windowMs/],
    ['{"kind":"quota","pool":[]}', /^sluice: .*pool/],
    ['{"kind":"quota"', /^sluice: daily must be JSON: /],
  ])('refuses the definition %s with 2, and says what is wrong', async (definition, message) => {
    const { code, stderr } = await server.sluice(['limits', 'set', 'daily', definition, '-q', 'web'])

    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(message) })
  })

  it('refuses a rate that is none with 2', async () => {
    const { code, stderr } = await server.sluice(['limits', 'set', 'queue', 'fast', '-q', 'web'])

    expect(code).toBe(2)
    expect(stderr).toMatch(/^sluice: queue: It must be a rate such as '500\/s'.*\n$/)
  })
})

describe('sluice dead', () => {
  it('lists, shows, retries and discards dead letters', async () => {
    await server.submitJob('web', { tenant: 'graveyard' })
    const find = () => server.data<{ key: string }>(['dead', 'ls', '-q', 'web', '--tenant', 'graveyard'])
    await expect.poll(find, { timeout: 20_000 }).toHaveLength(1)
    const [letter] = await find()
    const key = letter?.key ?? ''

    const [shown] = await server.data(['dead', 'show', key, '-q', 'web'])
    const [retried] = await server.data(['dead', 'retry', key, '-q', 'web'])
    await expect.poll(find, { timeout: 20_000 }).toHaveLength(1)
    const [discarded] = await server.data(['dead', 'discard', key, '-q', 'web'])

    expect(letter).toMatchObject({ tenant: 'graveyard', type: 'http.request', reason: 'discarded' })
    expect(shown).toMatchObject({ state: 'failed', payload: { url: 'http://not-allowed.example' } })
    expect(retried).toEqual({ key, retried: true })
    expect(discarded).toEqual({ key, discarded: true })
    expect(await find()).toEqual([])
  })

  it('refuses a key beside what chooses among many, and a payload without a key: with 2, and nothing has changed', async () => {
    await server.submitJob('web', { tenant: 'kept' })
    const find = () => server.data<{ key: string }>(['dead', 'ls', '-q', 'web', '--tenant', 'kept'])
    await expect.poll(find, { timeout: 20_000 }).toHaveLength(1)
    const [letter] = await find()
    const key = letter?.key ?? ''

    const ends = await Promise.all([
      server.sluice(['dead', 'discard', key, '-q', 'web', '--dry-run']),
      server.sluice(['dead', 'retry', key, '-q', 'web', '--tenant', 'kept', '--rate', '5/s']),
      server.sluice(['dead', 'retry', '-q', 'web', '--tenant', 'kept', '--payload', '{}']),
    ])

    expect(ends.map(({ code }) => code)).toEqual([2, 2, 2])
    expect(ends.map(({ stderr }) => stderr)).toEqual([
      'sluice: a key names one dead letter: leave out the key, or --dry-run\n',
      'sluice: a key names one dead letter: leave out the key, or --tenant, --rate\n',
      'sluice: --payload needs the key of the letter it is for\n',
    ])
    expect(await find()).toEqual([letter])
  })

  it('tells a list of which none fits from a queue without dead letters', async () => {
    const [none, unfit] = await Promise.all([
      server.sluice(['dead', 'ls', '-q', 'mail']),
      server.sluice(['dead', 'ls', '-q', 'web', '--tenant', 'nobody']),
    ])

    expect(none.stderr).toBe('Queue "mail" has no dead letters.\n')
    expect(unfit.stderr).toMatch(/^None of the \d+ dead letters that were looked at fits\.\n$/)
  })

  it('ends with 3 for a letter that is not there', async () => {
    const { code, stderr } = await server.sluice(['dead', 'retry', 'normal:default:1:acme', '-q', 'web'])

    expect({ code, stderr }).toEqual({ code: 3, stderr: 'sluice: There is no such dead letter.\n' })
  })
})

describe('a command that talks to a server', () => {
  it('ends with 3 for a queue that is not there, as a problem document with --json', async () => {
    const { code, stdout, stderr } = await server.sluice(['limits', 'ls', '-q', 'nowhere', '--json'])

    expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
    expect(JSON.parse(stderr)).toMatchObject({ status: 404, detail: expect.stringContaining('nowhere'), exitCode: 3 })
  })

  it('ends with 8 when there is no server, and says how to start one', async () => {
    const { code, stderr } = await server.sluice(['tenants', 'ls'], { env: { SLUICE_URL: 'http://127.0.0.1:1' } })

    expect(code).toBe(8)
    expect(stderr).toMatch(/^sluice: no answer from http:\/\/127\.0\.0\.1:1 \(.*\); start it with "sluice serve".*\n$/)
  })
})
