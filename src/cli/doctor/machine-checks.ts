import { checkQueueOptions } from '../../engine/queue-options.ts'
import { checkDefinition } from '../../engine/shared-limit.ts'
import { KeyRing } from '../../http/api-keys.ts'
import { isLoopback } from '../../http/binding.ts'
import { toCliError } from '../cli-error.ts'
import type { LoadedConfig } from '../config.ts'
import { hasGroup, ownOptionsOf } from '../serve/open-queues.ts'
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
  const ofLimits = Object.entries(config.limits ?? {}).flatMap(([name, given]) =>
    problemOf(() => checkDefinition(name, hasGroup(given) ? given.limit : given)),
  )
  const ofQueues = queues.flatMap(([name, served]) => [
    ...problemOf(() => checkQueueOptions(name, ownOptionsOf(served))),
    ...(served.shares ?? [])
      .filter((limit) => config.limits?.[limit] === undefined)
      .map((limit) => unknownLimit(name, limit)),
  ])
  const file = ok('config', `${path}: ${queues.length === 1 ? '1 queue' : `${queues.length} queues`}`)
  const problems = [...ofLimits, ...ofQueues]
  return [problems[0] ?? file, ...problems.slice(1), checkKeys(config.host ?? '127.0.0.1', config.keys ?? [])]
}

function unknownLimit(queue: string, limit: string): Finding {
  return failure('config', `queue ${queue} shares ${limit}, and "limits" has none of that name`, 'mend the config file')
}

function problemOf(check: () => unknown): Finding[] {
  try {
    check()
    return []
  } catch (error) {
    return [failure('config', toCliError(error).message, 'mend the config file')]
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
