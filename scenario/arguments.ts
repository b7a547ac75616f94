import { parseArgs } from 'node:util'
import { type Listed, OWN_FOLDER } from './catalogue.ts'

export interface ScenarioArguments {
  readonly names: readonly string[]
  readonly only: readonly string[] | undefined
  readonly full: boolean
  readonly json: boolean
  readonly folder: string
}

/** What the caller asked for cannot be done: said in one line, without a stack. */
export class UsageError extends Error {}

/** `list` or `[group ...] [--only name,name] [--full] [--json]`. */
export function scenarioArguments(args: string[]): ScenarioArguments {
  const { values, positionals } = parse(args)
  return {
    names: positionals,
    only: values.only?.split(',').map((name) => name.trim()),
    full: values.full,
    json: values.json,
    folder: values.folder,
  }
}

function parse(args: string[]) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        only: { type: 'string' },
        full: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        // For tests of this program.
        folder: { type: 'string', default: OWN_FOLDER },
      },
    })
  } catch (error) {
    throw new UsageError(`${(error as Error).message}. Options are --only NAME,..., --full and --json.`)
  }
}

/** Those of the named groups (all, if none is named) that `--only` names. */
export function choose(all: readonly Listed[], { names, only }: ScenarioArguments): readonly Listed[] {
  const groups = [...new Set(all.map(({ group }) => group))]
  for (const name of names) {
    if (!groups.includes(name)) throw new UsageError(`There is no group "${name}"; there is ${groups.join(', ')}.`)
  }
  const grouped = names.length === 0 ? all : all.filter(({ group }) => names.includes(group))
  const known = grouped.map(({ scenario }) => scenario.name)
  for (const name of only ?? []) {
    if (!known.includes(name)) throw new UsageError(`There is no scenario "${name}"; there are ${known.join(', ')}.`)
  }
  return only === undefined ? grouped : grouped.filter(({ scenario }) => only.includes(scenario.name))
}
