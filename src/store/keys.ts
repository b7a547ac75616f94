/**
 * Every key of a queue, in one place. All of them share the queue's hash tag, so that one script may touch them all.
 * Those that depend on a tenant, lane, claim or client are named inside the scripts, from the same prefix; the names
 * are listed here and in docs/keys.md, and a test compares the three.
 */

/** The keys whose names are fixed: declared to Redis with every call, so that Cluster checks them before it starts. */
const fixed = {
  queue: 'queue',
  settings: 'settings',
  readyHigh: 'ready:high',
  readyNormal: 'ready:normal',
  readyLow: 'ready:low',
  sinceHigh: 'since:high',
  sinceNormal: 'since:normal',
  sinceLow: 'since:low',
  parked: 'parked',
  unparking: 'unparking',
  paused: 'paused',
  delayed: 'delayed',
  aside: 'aside',
  leases: 'leases',
  running: 'running',
  limits: 'limits',
  dead: 'dead',
  deadJobs: 'dead:jobs',
  canceled: 'canceled',
  ids: 'ids',
  idle: 'idle',
  alarm: 'alarm',
  actions: 'actions',
  events: 'events',
  duties: 'duties',
  dutyTries: 'duties:tries',
  aggregators: 'aggregators',
  schedules: 'schedules',
  backlog: 'backlog',
  congestion: 'congestion',
} as const

/** Keys per client of this process. */
const perClient = { client: 'client:', wake: 'wake:' } as const

/** Keys that only scripts build; what stands for the changing part is in angle brackets. */
const insideScripts = [
  'tenant:<tenant>',
  'lane:<level>:<lane>:<tenant>',
  'front:<level>:<lane>:<tenant>',
  'ring:<level>:<tenant>',
  'lanes:<tenant>',
  'claim:<fence>',
  'ids:<period>:<generation>:<bucket>',
  'ids:@<tenant>:<action>:<generation>:<bucket>',
  'action:<tenant>:<action>',
  'actions:<tenant>',
  'stats:<tenant>:<action>',
  'letters:<tenant>:<action>',
  'results:<tenant>:<action>',
  'finished:<tenant>:<action>',
  'marks:<tenant>:<action>',
  'trash:<number>',
  'schedule:<schedule>',
  'congestion:<tenant>',
] as const

export type QueueKeys = Readonly<Record<keyof typeof fixed | keyof typeof perClient, string>>

/** `sluice:{promotions}:promotions:` — the tag is the queue's own name. */
export function keyPrefix(prefix: string, queue: string): string {
  return `${prefix}:{${queue}}:${queue}:`
}

export function queueKeys(prefix: string, queue: string, client: string): QueueKeys {
  const start = keyPrefix(prefix, queue)
  const keys: Record<string, string> = {}
  for (const [name, part] of Object.entries(fixed)) keys[name] = start + part
  for (const [name, part] of Object.entries(perClient)) keys[name] = start + part + client
  return keys as QueueKeys
}

/** All key patterns, as docs/keys.md lists them. */
export const keyPatterns: readonly string[] = [
  ...Object.values(fixed),
  ...Object.values(perClient).map((part) => `${part}<client>`),
  ...insideScripts,
]

/** Keys of one action that are read without a script. @param tenant - and name: tokens. */
export function actionKeys(
  keys: QueueKeys,
  tenant: string,
  name: string,
): Readonly<Record<'action' | 'letters' | 'results' | 'finished' | 'actions', string>> {
  const start = keys.queue.slice(0, -fixed.queue.length)
  const of = (part: string) => `${start}${part}:${tenant}:${name}`
  return {
    action: of('action'),
    letters: of('letters'),
    results: of('results'),
    finished: of('finished'),
    actions: `${start}actions:${tenant}`,
  }
}
