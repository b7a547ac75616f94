import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { checkOptions, integer, optional, type Rule, record, text } from '../assert.ts'
import type { ServedQueue, SluiceConfig } from '../config/define-config.ts'
import { CliError } from './cli-error.ts'
import { importTypeScript, NoTypeScriptError } from './typescript-config.ts'

const fileNames = ['sluice.config.ts', 'sluice.config.mjs', 'sluice.config.js']

const asGiven: Rule<unknown> = (value) => value

const configRules: Record<keyof SluiceConfig, Rule<unknown>> = {
  // Those of the library and the server are checked by them, where they are used.
  redis: asGiven,
  durability: asGiven,
  commandTimeoutMs: asGiven,
  allowEviction: asGiven,
  connectionName: asGiven,
  dataDir: asGiven,
  prefix: asGiven,
  log: asGiven,
  webhooks: asGiven,
  host: optional(text()),
  port: optional(integer({ min: 0, max: 65_535 })),
  keys: asGiven,
  limits: record(asGiven),
  queues: record((value, path, report) => {
    if (typeof value !== 'object' || value === null) report(path, 'must be an object of options')
    return value as ServedQueue
  }),
}

export interface LoadedConfig {
  /** The file it was read from; undefined when there is none. */
  readonly path: string | undefined
  readonly config: SluiceConfig
}

/** Reads the file that is named, or the one of the folder; without one everything has its default. */
export async function loadConfig(folder: string, named: string | undefined): Promise<LoadedConfig> {
  const path = named === undefined ? findConfig(folder) : resolve(folder, named)
  if (path === undefined) return { path, config: {} }
  if (!existsSync(path)) throw new CliError('usage', `${named}: there is no such file`)
  const module = (await importConfig(path)) as { default?: unknown }
  if (module.default === undefined) {
    throw new CliError('usage', `${path}: has no default export; write: export default defineConfig({ … })`)
  }
  const given = checkOptions(path, module.default, configRules)
  // What is not given must be missing, not undefined: the library has defaults for it.
  const config = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as SluiceConfig
  return { path, config }
}

function findConfig(folder: string): string | undefined {
  return fileNames.map((name) => join(folder, name)).find((path) => existsSync(path))
}

async function importConfig(path: string): Promise<unknown> {
  try {
    return path.endsWith('.ts') ? await importTypeScript(path) : await import(pathToFileURL(path).href)
  } catch (error) {
    const problem =
      error instanceof NoTypeScriptError
        ? `is TypeScript, which Node ${process.versions.node} cannot read by itself: install tsx in the project, use Node 22.18 or newer, or write sluice.config.mjs`
        : `could not be loaded: ${(error as Error).message}`
    throw new CliError('usage', `${path} ${problem}`, { cause: error })
  }
}
