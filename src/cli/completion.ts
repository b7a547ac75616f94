import { RootCommand } from '@bomb.sh/tab'
import type { Argument, Command, Option } from 'commander'
import { ApiClient } from './api-client.ts'
import { captured } from './completion-script.ts'
import { defaultUrl } from './default-url.ts'
import { createProgram } from './program.ts'
import { queuePath } from './server-options.ts'

/** Somebody waits with a finger on the key: names that do not come at once do not come. */
const ASK_FOR_MS = 2_000

/** The newest of each queue: more than these nobody reads through. */
const MOST_ACTIONS = 20

/**
 * Answers a shell: a line for each word that may stand next, and a line with what to do where there is none.
 * @param words - Those typed so far, the last one perhaps half; from `complete -- …`.
 */
export async function completeWords(words: readonly string[]): Promise<string> {
  const program = await createProgram()
  const { command, path } = commandOf(program, words)
  const wanted = wantedNext(command, words.slice(path.length))
  // Zero: the shell completes names of files by itself.
  if (wanted !== undefined && /^(file|folder)$/.test(wanted)) return ':0\n'
  const values = wanted === undefined ? [] : await namesFor(wanted, path, words)
  const root = new RootCommand()
  describe(root, program, '', values)
  return captured(() => root.parse([...words]))
}

/** As far as the words name commands. */
function commandOf(program: Command, words: readonly string[]): { command: Command; path: readonly string[] } {
  let command = program
  const path: string[] = []
  for (const word of words.slice(0, -1)) {
    const next = command.commands.find((each) => each.name() === word)
    if (!next) break
    command = next
    path.push(word)
  }
  return { command, path }
}

/** What the value is called that is typed now: `tenant` of `--tenant <tenant>` or of an argument; undefined: an option or command. */
function wantedNext(command: Command, words: readonly string[]): string | undefined {
  const last = words.at(-1) ?? ''
  const before = words.at(-2)
  if (last.startsWith('-')) return undefined
  const option = before?.startsWith('-') ? optionOf(command, before) : undefined
  if (option && !option.isBoolean()) return valueName(option)
  const given = words.slice(0, -1).filter((word, at, all) => {
    const asked = at > 0 ? optionOf(command, all[at - 1] ?? '') : undefined
    return !word.startsWith('-') && (asked === undefined || asked.isBoolean())
  })
  return command.registeredArguments[given.length]?.name()
}

function optionOf(command: Command, word: string): Option | undefined {
  return command.options.find(({ long, short }) => word === long || word === short)
}

/** `queue` for `-q, --queue <name>`: what is between the brackets says too little there. */
function valueName({ flags, long }: Option): string {
  const name = /[<[]([a-z]+)/.exec(flags)?.[1] ?? ''
  return /^names?$/.test(name) ? (long ?? '').slice(2) : name
}

/** Names that only a server knows. Without one there are none, and nobody is told why. */
async function namesFor(wanted: string, path: readonly string[], words: readonly string[]): Promise<readonly string[]> {
  const isAction = path[0] === 'actions' && wanted === 'id'
  if (!isAction && !['queue', 'tenant'].includes(wanted)) return []
  const url = valueIn(words, '--url') ?? process.env.SLUICE_URL ?? defaultUrl
  const queue = valueIn(words, '--queue') ?? valueIn(words, '-q') ?? process.env.SLUICE_QUEUE ?? 'default'
  const api = new ApiClient({ url, key: valueIn(words, '--key') ?? process.env.SLUICE_KEY })
  const queues = async () =>
    (await api.get<{ queues: { name: string }[] }>('/v1/queues')).queues.map(({ name }) => name)
  const actions = async (of: string) =>
    (await api.get<{ actions: { id: string }[] }>(queuePath(of, 'actions'), { limit: MOST_ACTIONS })).actions
  const ask = async (): Promise<string[]> => {
    if (wanted === 'queue') return queues()
    // The id of an action holds its queue: nobody says it beside.
    if (isAction) return (await Promise.all((await queues()).map(actions))).flat().map(({ id }) => id)
    const { tenants } = await api.get<{ tenants: { tenant: string }[] }>(queuePath(queue, 'overview'))
    return tenants.map(({ tenant }) => tenant)
  }
  const late = new Promise<string[]>((resolve) => setTimeout(resolve, ASK_FOR_MS, []).unref())
  try {
    return await Promise.race([ask().catch(() => []), late])
  } finally {
    await api.close()
  }
}

function valueIn(words: readonly string[], option: string): string | undefined {
  const at = words.indexOf(option)
  return at === -1 || at >= words.length - 2 ? undefined : words[at + 1]
}

/** The commands as the library for completion knows them. */
function describe(root: RootCommand, command: Command, path: string, values: readonly string[]): void {
  const target = path === '' ? root : root.command(path, command.summary())
  for (const option of command.options) {
    const name = (option.long ?? '').replace(/^--/, '')
    const alias = option.short?.slice(1)
    if (option.isBoolean()) target.option(name, option.description, ...(alias === undefined ? [] : [alias]))
    else target.option(name, option.description, (complete) => offer(complete, option.argChoices ?? values), alias)
  }
  for (const argument of command.registeredArguments) {
    target.argument(argument.name(), (complete) => offer(complete, choicesOf(argument) ?? values), argument.variadic)
  }
  for (const child of command.commands)
    describe(root, child, path === '' ? child.name() : `${path} ${child.name()}`, values)
}

function choicesOf(argument: Argument): readonly string[] | undefined {
  return argument.argChoices
}

function offer(complete: (value: string, description: string) => void, values: readonly string[]): void {
  for (const value of values) complete(value, '')
}
