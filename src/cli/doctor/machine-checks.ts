import { checkOptions } from '../../assert.ts'
import { WebhookTeller } from '../../bulk/webhooks.ts'
import type { ServedQueue, SluiceConfig } from '../../config/define-config.ts'
import { checkDefinition } from '../../engine/shared-limit.ts'
import { KeyRing } from '../../http/api-keys.ts'
import { isLoopback } from '../../http/binding.ts'
import { problemOfGroups } from '../../limits/shared.ts'
import { sluiceRules } from '../../sluice.ts'
import { toCliError } from '../cli-error.ts'
import type { LoadedConfig } from '../config.ts'
import { checkServedQueue } from '../serve/check-queue.ts'
import { groupOf, hasGroup, storeOptionsOf } from '../serve/open-queues.ts'
import { type Finding, failure, ok, warning } from './finding.ts'

/** As package.json has it: `^20.20.2 || >=22.12.0`. */
export function checkNode(version: string): Finding {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
  const isNewEnough =
    major === 20 ? minor > 20 || (minor === 20 && patch >= 2) : major === 22 ? minor >= 12 : major > 22
  if (isNewEnough) return ok('node', version)
  return failure('node', version, 'use Node 20.20.2 or newer, or 22.12 or newer')
}

/** The file itself could be read; here it is whether its parts can be used. */
export function checkConfig({ path, config }: LoadedConfig): Finding[] {
  if (path === undefined) return [ok('config', 'no file: everything has its default')]
  const queues = Object.entries(config.queues ?? {})
  const ofStore = [
    ...problemOf(() => checkOptions('the store', storeOptionsOf(config), sluiceRules)),
    ...problemOf(() => new WebhookTeller(config.webhooks ?? {}).close()),
  ]
  const ofLimits = Object.entries(config.limits ?? {}).flatMap(([name, given]) =>
    problemOf(() => checkDefinition(name, hasGroup(given) ? given.limit : given)),
  )
  const ofQueues = queues.flatMap(([name, served]) => [
    ...problemOf(() => checkServedQueue(name, served)),
    ...sharingProblems(name, served, config.limits ?? {}),
  ])
  const file = ok('config', `${path}: ${queues.length === 1 ? '1 queue' : `${queues.length} queues`}`)
  const problems = [...ofStore, ...ofLimits, ...ofQueues]
  return [problems[0] ?? file, ...problems.slice(1), checkKeys(config.host ?? '127.0.0.1', config.keys ?? [])]
}

function sharingProblems(
  queue: string,
  { shares }: ServedQueue,
  limits: NonNullable<SluiceConfig['limits']>,
): Finding[] {
  const names = Array.isArray(shares) ? (shares as readonly string[]) : []
  const unknown = names
    .filter((name) => limits[name] === undefined)
    .map((name) => configFailure(`queue ${queue} shares ${name}, and "limits" has none of that name`))
  const known = names.flatMap((name) => {
    const given = limits[name]
    return given === undefined ? [] : [{ name, group: groupOf(name, given) }]
  })
  const problem = problemOfGroups(known)
  return problem === undefined ? unknown : [...unknown, configFailure(`queues.${queue}.shares ${problem}`)]
}

function configFailure(problem: string): Finding {
  return failure('config', problem.replaceAll(/\s*\n\s*/g, ' '), 'mend the config file')
}

function problemOf(check: () => unknown): Finding[] {
  try {
    check()
    return []
  } catch (error) {
    return [configFailure(toCliError(error).message)]
  }
}

function checkKeys(host: string, keys: NonNullable<LoadedConfig['config']['keys']>): Finding {
  const check = 'api keys'
  try {
    new KeyRing(keys)
  } catch (error) {
    return failure(check, toCliError(error).message, 'make the entry with "sluice keys create"')
  }
  if (keys.length === 0 && !isLoopback(host)) {
    const fix = 'add a key with "sluice keys create", or listen on 127.0.0.1'
    return failure(check, `none, and the server is to listen on ${host}: it refuses to start`, fix)
  }
  const expired = keys.filter(({ expiresAt }) => expiresAt !== undefined && new Date(expiresAt).getTime() <= Date.now())
  if (expired.length > 0) {
    return warning(check, `${expired.map(({ id }) => id).join(', ')} expired`, 'take it off, or make a new one')
  }
  return ok(check, keys.length === 0 ? 'none: only this machine may ask' : `${keys.length}`)
}
