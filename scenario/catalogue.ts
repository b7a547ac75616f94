import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Scenario } from './scenario.ts'

/** Folders of scenarios. What lies beside them serves the scenarios. */
const GROUPS = ['engine', 'bulk']

/** Where the groups are, unless a test of this program has some of its own. */
export const OWN_FOLDER = fileURLToPath(new URL('.', import.meta.url))

export interface Listed {
  readonly group: string
  readonly scenario: Scenario
}

/** Every scenario of the project. A new file is one more: there is no list to forget it in. */
export async function allScenarios(folder: string): Promise<Listed[]> {
  const files = GROUPS.flatMap((group) => filesOf(folder, group))
  return Promise.all(
    files.map(async ({ group, name, path }) => ({ group, scenario: await load(`${group}/${name}`, name, path) })),
  )
}

function filesOf(folder: string, group: string): { group: string; name: string; path: string }[] {
  const path = join(folder, group)
  if (!existsSync(path)) return []
  const files = readdirSync(path).filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
  return files.sort().map((file) => ({ group, name: file.slice(0, -'.ts'.length), path: join(path, file) }))
}

async function load(place: string, name: string, path: string): Promise<Scenario> {
  const { scenario } = (await import(pathToFileURL(path).href)) as { scenario?: Scenario }
  if (scenario === undefined) throw new Error(`scenario/${place}.ts does not export a scenario`)
  if (scenario.name !== name) throw new Error(`scenario/${place}.ts exports one with another name: ${scenario.name}`)
  return scenario
}
