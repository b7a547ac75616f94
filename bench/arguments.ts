import { parseArgs } from 'node:util'
import type { Measure } from './measure.ts'

export interface BenchArguments {
  measures: readonly Measure[]
  quick: boolean
  json: boolean
}

/** `<group> [--quick] [--json] [--only name,name]`; throws with what is known when it does not know a name. */
export function benchArguments(args: string[], groups: Readonly<Record<string, readonly Measure[]>>): BenchArguments {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      only: { type: 'string' },
    },
  })
  const names = positionals.length === 0 ? Object.keys(groups) : positionals
  const measures = names.flatMap((name) => groups[name] ?? unknown('group', name, Object.keys(groups)))
  const only = values.only?.split(',')
  for (const name of only ?? []) {
    if (!measures.some((measure) => measure.name === name))
      unknown(
        'measure',
        name,
        measures.map((measure) => measure.name),
      )
  }
  return {
    measures: only === undefined ? measures : measures.filter(({ name }) => only.includes(name)),
    quick: values.quick,
    json: values.json,
  }
}

function unknown(what: string, name: string, known: readonly string[]): never {
  throw new Error(`no ${what} called ${name}; there is ${known.join(', ')}`)
}
