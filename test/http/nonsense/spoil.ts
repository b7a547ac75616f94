import type { JsonSchema } from '../operations.ts'

interface Spoiled {
  readonly where: string
  readonly text: string
}

const unknownFields = [
  'x',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'role',
  'admin',
  '',
  'Tenant',
  'type ',
]

/** The example with one thing wrong in it, each time another. */
export function spoil(schema: JsonSchema, example: Record<string, unknown>): Spoiled[] {
  const spoiled: Spoiled[] = []
  const put = (path: readonly (string | number)[], value: unknown, where: string) => {
    spoiled.push({ where, text: JSON.stringify(replaced(example, path, value)) })
  }
  const visit = (at: JsonSchema, path: readonly (string | number)[], value: unknown) => {
    for (const wrong of wrongValues(at)) put(path, wrong, `${path.join('.')} wrong`)
    if (at.properties && at.additionalProperties === false) {
      for (const name of unknownFields) {
        const fields = JSON.stringify({ ...(value as object) }).slice(1, -1)
        // As text, because an object of ours cannot have a field __proto__ in the making.
        const marked = JSON.stringify(replaced(example, path, '@@')).replace(
          '"@@"',
          `{${fields}${fields && ','}${JSON.stringify(name)}:1}`,
        )
        spoiled.push({
          where: `${path.join('.')} with ${name}`,
          text: path.length === 0 ? `{${fields}${fields && ','}${JSON.stringify(name)}:1}` : marked,
        })
      }
    }
    for (const [name, each] of Object.entries(at.properties ?? {}))
      visit(each, [...path, name], (value as Record<string, unknown> | undefined)?.[name] ?? {})
    if (at.items) visit(at.items, [...path, 0], (value as unknown[] | undefined)?.[0] ?? {})
    if (typeof at.additionalProperties === 'object') visit(at.additionalProperties, [...path, 'own'], undefined)
  }
  visit(schema, [], example)
  return spoiled
}

function replaced(value: unknown, path: readonly (string | number)[], by: unknown): unknown {
  const [step, ...rest] = path
  if (step === undefined) return by
  if (typeof step === 'number') return [replaced((value as unknown[] | undefined)?.[step] ?? {}, rest, by)]
  const fields = Object(value) as Record<string, unknown>
  return { ...fields, [step]: replaced(fields[step], rest, by) }
}

function wrongValues(schema: JsonSchema): unknown[] {
  if (schema.anyOf) {
    const isNullable = schema.anyOf.some(({ type }) => type === 'null')
    return isNullable
      ? ['x', 1, true, [], {}]
      : [
          'x',
          1,
          true,
          [],
          ['500/s'],
          { kind: 'x' },
          { kind: 'bucket' },
          '0/s',
          '-1/s',
          '5/parsec',
          { kind: 'concurrency', max: 0 },
        ]
  }
  if (schema.enum) return ['x', '__proto__', 1, null, [], {}, true]
  const number = [schema.minimum, schema.maximum].flatMap((bound, at) =>
    bound === undefined ? [] : [at === 0 ? bound - 1 : bound + 1],
  )
  switch (schema.type) {
    case 'string':
      return [
        1,
        true,
        null,
        [],
        {},
        ...(schema.minLength ? [''] : []),
        ...(schema.maxLength ? ['x'.repeat(schema.maxLength + 1)] : []),
        ...(schema.maxLength === 256 && schema.minLength ? ['a\u0000b', '\n', '\ud800'] : []),
      ]
    case 'integer':
      return ['1', '', null, true, [], {}, 1.5, ...number]
    case 'number':
      return ['1', '', null, true, [], {}, ...number]
    case 'boolean':
      return [0, 1, '', 'true', null, [], {}]
    case 'array':
      return ['', 'x', 1, null, true, {}, { length: 1 }, [1], ['x'], [null], [[]]]
    case 'object':
      return ['', 'x', 1, null, true, [], [{}]]
    default:
      return []
  }
}
