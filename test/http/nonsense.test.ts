import { Agent, request } from 'node:http'
import { PassThrough } from 'node:stream'
import { afterAll, describe, expect, it } from 'vitest'
import { keys, useHttpServer } from './http-server.ts'
import { type Attempt, identityOf } from './nonsense/attempt.ts'
import { nonsenseFor } from './nonsense/nonsense.ts'
import { documentedOperations } from './operations.ts'

const server = useHttpServer()
const agent = new Agent({ keepAlive: true, maxSockets: 4 })

afterAll(() => agent.destroy())

interface Answer {
  readonly status: number
  readonly type: string
  readonly text: string
}

/** As it is: nothing on the way repairs the path. */
function send(port: number, { method, path, headers, body }: Attempt): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const sent = request({ host: '127.0.0.1', port, agent, method, path, headers: { ...headers, ...length } })
    sent.on('response', (response) => {
      const pieces: Buffer[] = []
      response.on('data', (piece: Buffer) => pieces.push(piece))
      response.on('end', () => {
        const text = Buffer.concat(pieces).toString()
        resolve({ status: response.statusCode ?? 0, type: String(response.headers['content-type']), text })
      })
    })
    // A server that has answered may close before all of a body that it does not want was sent.
    sent.on('error', (error) => setImmediate(() => reject(new Error(`${method} ${path}: ${error.message}`))))
    sent.end(body)
  })
}

/** What an answer lacks of being a fitting problem document; undefined if nothing. */
function shortcoming(attempt: Attempt, { status, type, text }: Answer): string | undefined {
  if (!attempt.expected.includes(status))
    return `${status} instead of ${attempt.expected.join(' or ')}: ${text.slice(0, 200)}`
  if (type !== 'application/problem+json; charset=utf-8') return `the type ${type}`
  const problem = JSON.parse(text)
  const isWhole = problem.status === status && /^urn:sluice:problem:/.test(problem.type) && problem.detail.length > 0
  if (!isWhole) return `the document ${text}`
  return /\bat .+:\d+:\d+|node_modules|\.ts\b/.test(text) ? `a stack: ${text}` : undefined
}

/** Everything that is stored, but for what a client remembers of its own last calls. */
async function stored(): Promise<Record<string, string>> {
  const client = server.redis.client()
  const names = (await client.keys(`${server.prefix}:*`)).filter((name) => !/:(client|wake):/.test(name)).sort()
  const dumps = await Promise.all(
    names.map(async (name) => [name, (await client.dumpBuffer(name))?.toString('base64') ?? '']),
  )
  client.disconnect()
  return Object.fromEntries(dumps)
}

async function fill(): Promise<Record<string, string>> {
  const { mail } = server
  await mail.submit({ type: 'DIE', tenant: 'acme', maxRetries: 0 })
  for (const job of await mail.claim(1)) await job.fail(new Error('no such mailbox'))
  await mail.submit({ type: 'SEND', tenant: 'acme', id: 'order-17' })
  await mail.submit({ tenant: 'acme', action: 'summer-sale', type: 'SEND', keepResults: true, seal: false, jobs: [{}] })
  const { letters } = await mail.deadLetters.list()
  return { letter: encodeURIComponent(letters[0]?.key ?? '') }
}

const operations = await documentedOperations()

describe.each(operations)('$id', (operation) => {
  it('answers two hundred kinds of nonsense with fitting problems, changes nothing, and goes on', async () => {
    const places = await fill()
    const stream = new PassThrough()
    const { app, port } = await server.listen({ keys, rateLimit: false, log: { level: 'error', stream } })
    const attempts = nonsenseFor(operation, places)
    const before = await stored()
    const wrong: string[] = []

    for (const attempt of attempts) {
      const found = shortcoming(attempt, await send(port, attempt))
      if (found !== undefined) wrong.push(`${attempt.method} ${attempt.what}: ${found}`)
    }

    expect(wrong).toEqual([])
    expect(new Set(attempts.map(identityOf)).size).toBeGreaterThanOrEqual(200)
    expect(await stored()).toEqual(before)
    expect((await app.inject({ url: '/healthz' })).statusCode).toBe(200)
    expect(stream.read()).toBeNull()
  })
})
