/**
 * Every key of a queue, in one place. All of them share the queue's hash tag, so that one script may touch them all: its
 * own name, or that of the group whose limits it shares.
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
  audit: 'audit',
} as const

/**
 * Keys of a group: limits shared by the queues under its hash tag, and by code that has no queue. No queue's name starts
 * with an @.
 */
const ofGroup = { groupLimits: '@limits', groupQueues: '@queues' } as const
const clientOfGroup = '@client:'

/** Of a queue, under its own name whatever its group: where it lives. */
const home = '@home'

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
  'alarm:<levels>',
] as const

/** What a client of a group has that is no queue. */
export type GroupKeys = Readonly<Record<keyof typeof ofGroup | 'client', string>>
export type QueueKeys = GroupKeys & Readonly<Record<keyof typeof fixed | keyof typeof perClient, string>>

/** `sluice:{promotions}:promotions:` — the tag is the queue's own name, unless it shares limits of a group. */
export function keyPrefix(prefix: string, queue: string, group = queue): string {
  return `${groupPrefix(prefix, group)}${queue}:`
}

function groupPrefix(prefix: string, group: string): string {
  return `${prefix}:{${group}}:`
}

export function queueKeys(prefix: string, queue: string, client: string, group = queue): QueueKeys {
  const start = keyPrefix(prefix, queue, group)
  const keys: Record<string, string> = { ...groupKeys(prefix, group, client) }
  for (const [name, part] of Object.entries(fixed)) keys[name] = start + part
  for (const [name, part] of Object.entries(perClient)) keys[name] = start + part + client
  return keys as QueueKeys
}

/** Where the group of a queue is noted. */
export function homeKey(prefix: string, queue: string): string {
  return groupPrefix(prefix, queue) + home
}

export function groupKeys(prefix: string, group: string, client: string): GroupKeys {
  const start = groupPrefix(prefix, group)
  const keys: Record<string, string> = {}
  for (const [name, part] of Object.entries(ofGroup)) keys[name] = start + part
  keys.client = start + clientOfGroup + client
  return keys as GroupKeys
}

/** All key patterns, as docs/keys.md lists them. */
export const keyPatterns: readonly string[] = [
  ...Object.values(fixed),
  ...Object.values(perClient).map((part) => `${part}<client>`),
  ...Object.values(ofGroup),
  `${clientOfGroup}<client>`,
  home,
  ...insideScripts,
]

/** The jobs of one claim that have not ended. */
export function claimKey(keys: QueueKeys, fence: string): string {
  return `${keys.queue.slice(0, -fixed.queue.length)}claim:${fence}`
}

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
