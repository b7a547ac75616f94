import { type Command, InvalidArgumentError, Option } from 'commander'
import { eventTypes } from '../../engine/events.ts'
import type { QueueEvent } from '../../index.ts'
import { type Invocation, newCommand, onCall } from '../command.ts'
import { withoutControls } from '../control-characters.ts'
import { parseDuration } from '../duration.ts'
import type { ExitName } from '../exit-codes.ts'
import { Interruption } from '../interruption.ts'
import { commaList } from '../option-values.ts'
import type { Output } from '../output.ts'
import { type QueueSource, type SourceOptions, useSource, withSource } from '../queue-source.ts'
import { Reconnection } from '../reconnection.ts'

interface EventsOptions extends SourceOptions {
  readonly queue?: readonly string[]
  readonly tenant?: string
  readonly type?: readonly string[]
  readonly since?: string
  readonly follow?: true
}

export function eventsCommand(): Command {
  const command = newCommand('events', {
    summary: 'what has happened in a queue, and what happens now',
    details:
      'Ends of actions, failed jobs, dead letters, stalls, parked tenants, changed limits, missed ticks. With --follow it goes on ' +
      'until Ctrl-C, over restarts of the server, and leaves nothing out that is still kept.',
    examples: [
      'sluice events --queue promotions --since 1h',
      'sluice events --follow --type action,job.dead',
      'sluice events --since 1768000000000-0 --json | jq -r .type',
    ],
  })
    .addOption(
      new Option('-q, --queue <names>', 'only these queues; all of them unless given')
        .env('SLUICE_QUEUE')
        .argParser(commaList),
    )
    .option('-t, --tenant <name>', 'only what is about this tenant')
    .option('--type <types>', `only these types, or all that begin so: job.dead,action`, typeList)
    .option(
      '--since <moment>',
      'from then on: 10m, a date, or the id of an event (default: all that is kept)',
      position,
    )
    .option('-f, --follow', 'go on with what happens; without --since from now on')
  return onCall<EventsOptions>(withSource(command), events)
}

/** `job.dead,action`: whole types, or what stands before their dot. */
function typeList(text: string, before: readonly string[] = []): string[] {
  const names = commaList(text, before)
  for (const name of names) {
    if (!eventTypes.some((type) => fits(type, name))) {
      throw new InvalidArgumentError(`There is no type "${name}"; there are ${eventTypes.join(', ')}.`)
    }
  }
  return names
}

function fits(type: string, name: string): boolean {
  return type === name || type.startsWith(`${name}.`)
}

/** The id after which events are wanted. Ids are instants in ms: so is every moment. */
function position(text: string): string {
  if (/^\d{10,}-\d+$/.test(text)) return text
  const ago = parseDuration(text)
  const at = ago === undefined ? Date.parse(text) : Date.now() - ago
  if (!Number.isNaN(at) && at >= 0) return String(Math.round(at))
  throw new InvalidArgumentError(
    'It must be a time such as 10m, a date such as 2026-01-31T12:00:00Z, or the id of an event.',
  )
}

async function events({ output, options }: Invocation<EventsOptions>): Promise<ExitName> {
  const named = options.queue ?? []
  return useSource<ExitName>(options, named, async (source) => {
    const queues = named.length > 0 ? named : await source.queues()
    const interruption = Interruption.listen(() => {})
    try {
      if (options.follow) output.talk(`Following ${queues.join(', ')}. Ctrl-C ends it.`)
      const counts = await showAll(source, queues, { ...options, output, signal: interruption.signal })
      if (!options.follow && counts.every((count) => count === 0)) output.talk('No such events are kept.')
      return 'ok'
    } finally {
      interruption.ignore()
    }
  })
}

/** Several queues side by side. With one that cannot be shown all of them end, or nobody would be told while the others go on. */
async function showAll(
  source: QueueSource,
  queues: readonly string[],
  asked: Omit<Shown, 'isOfSeveral'>,
): Promise<number[]> {
  const failed = new AbortController()
  const signal = AbortSignal.any([asked.signal, failed.signal])
  const shows = queues.map((queue) => show(source, queue, { ...asked, signal, isOfSeveral: queues.length > 1 }))
  try {
    return await Promise.all(shows)
  } finally {
    failed.abort()
    await Promise.allSettled(shows)
  }
}

interface Shown extends EventsOptions {
  readonly output: Output
  readonly signal: AbortSignal
  readonly isOfSeveral: boolean
}

/** Goes on after the last event that was shown when the connection is lost. Answers how many it has shown. */
async function show(source: QueueSource, queue: string, shown: Shown): Promise<number> {
  const { output, signal, follow = false } = shown
  // By this machine's clock, for the case that the connection is lost before anything has happened.
  const begun = String(Date.now())
  let count = 0
  let last = shown.since ?? (follow ? undefined : '0')
  const reconnection = new Reconnection()
  const onOpen = () => reconnection.answered()
  for (;;) {
    try {
      for await (const event of source.events(queue, { from: last, follow, signal, onOpen })) {
        onOpen()
        last = event.id
        if (!isWanted(event, shown)) continue
        count += 1
        write(output, { queue, ...event }, shown)
      }
      if (!follow) return count
    } catch (error) {
      if (signal.aborted) return count
      if (!follow) throw error
      reconnection.failed(error, () => output.talk(`The connection to ${source.name} is lost; trying again.`))
    }
    if (signal.aborted) return count
    last ??= begun
    await reconnection.pause(signal).catch(() => {})
  }
}

function isWanted(event: QueueEvent, { tenant, type }: Shown): boolean {
  if (tenant !== undefined && event.tenant !== tenant) return false
  return type === undefined || type.some((name) => fits(event.type, name))
}

function write(output: Output, event: QueueEvent & { readonly queue: string }, { isOfSeveral }: Shown): void {
  output.data(event, () => {
    const { queue, id: _id, at, type, ...fields } = event
    const facts = Object.entries(fields).map(
      ([name, value]) => `${name}=${name === 'until' ? instant(Number(value)) : withoutControls(String(value))}`,
    )
    return [instant(at), ...(isOfSeveral ? [queue] : []), colored(output, type), ...facts].join('  ')
  })
}

function instant(ms: number): string {
  return new Date(ms).toISOString()
}

function colored(output: Output, type: QueueEvent['type']): string {
  if (/^(job\.(dead|stalled)|action\.failed)$/.test(type)) return output.style('red', type)
  return type === 'action.completed' ? output.style('green', type) : type
}
