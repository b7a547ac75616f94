import { expect, it } from 'vitest'
import { useHttpServer } from './http-server.ts'
import { exampleIn, type Operation, operationsOf } from './operations.ts'

const server = useHttpServer()

function hasExample({ bodies, responses }: Operation): boolean {
  const answered = Object.entries(responses).filter(([status]) => status.startsWith('2'))
  const media = [bodies, ...answered.map(([, { content }]) => content ?? {})].flatMap(Object.values)
  return media.length > 0 && media.every((each) => exampleIn(each) !== undefined)
}

it('the document is OpenAPI 3.1, and all its references lead somewhere', async () => {
  const { body } = await server.ask('GET', '/openapi.json')
  const references = [...JSON.stringify(body).matchAll(/"\$ref":"#\/([^"]+)"/g)].map((match) => match[1] ?? '')

  expect(body.openapi).toBe('3.1.0')
  expect(references.length).toBeGreaterThan(0)
  for (const reference of references) {
    expect(
      reference.split('/').reduce((at, step) => at?.[step], body),
      reference,
    ).toBeDefined()
  }
})

it('every operation has a name of its own, a summary, who may use it, and an example of each body', async () => {
  const operations = await operationsOf(server.app)

  expect(new Set(operations.map(({ id }) => id)).size).toBe(operations.length)
  for (const operation of operations) {
    expect(operation.summary, operation.id).toMatch(/^[A-Z].*\.$/)
    expect(operation.tags, operation.id).toHaveLength(1)
    expect(operation.access, operation.id).toBeDefined()
    expect(hasExample(operation), `${operation.id} lacks an example`).toBe(true)
  }
})

it('every parameter of a path has an example, and every other a description or a list of what it may be', async () => {
  const operations = await operationsOf(server.app)

  for (const { id, path, parameters } of operations) {
    const named = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1])
    expect(
      parameters
        .filter((each) => each.in === 'path')
        .map(({ name }) => name)
        .sort(),
      id,
    ).toEqual(named.sort())
    for (const parameter of parameters) {
      const isSaid = parameter.in === 'path' ? parameter.example !== undefined : parameter.description !== undefined
      expect(isSaid || parameter.schema.enum !== undefined, `${id}: ${parameter.name}`).toBe(true)
    }
  }
})

it('bodies allow no unknown fields by what the document says', async () => {
  for (const { id, bodies } of await operationsOf(server.app)) {
    const json = bodies['application/json']
    if (json) expect(json.schema.additionalProperties, id).toBe(false)
  }
})

it('the page for people has every operation, and nothing that is loaded from elsewhere', async () => {
  const { body, response } = await server.ask('GET', '/docs')
  const operations = await operationsOf(server.app)

  for (const { id } of operations) expect(body).toContain(`id="${id}"`)
  expect(body).not.toMatch(/<script|<link|<img|src=|url\(|@import/)
  expect(response.headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'sha256-/)
})
