/** A piece of a script's text: from `line` on it is `file`, from its `fileLine` on. */
export interface ScriptOrigin {
  readonly line: number
  readonly file: string
  readonly fileLine: number
}

/** What has become of one file of Lua. */
export interface LuaText {
  readonly file: string
  readonly lines: readonly string[]
}

/** A module as one script has it. */
export interface LuaPart {
  readonly name: string
  readonly module: LuaText
  /** Instead of some of its lines, by their position from 0. */
  readonly instead: Readonly<Record<number, string>>
  /** Functions that the script does not need: first and last line of each, by turns. Line numbers stay. */
  readonly without: readonly number[]
}

export interface ScriptParts {
  readonly shebang: string
  /** What the head of the script requires, and what that requires. */
  readonly first: readonly LuaPart[]
  /** What only some calls of it need. */
  readonly rare: readonly LuaPart[]
  readonly own: LuaText
}

function linesOf({ module, instead, without }: LuaPart): string[] {
  const lines = module.lines.map((line, index) => instead[index] ?? line)
  for (let at = 0; at < without.length; at += 2) {
    lines.fill('', without[at], (without[at + 1] as number) + 1)
  }
  return lines
}

/**
 * The text of a script: the modules it requires, which only make themselves when they are asked to, and its own. Of all
 * that only some calls need there is one function, for as long as nobody asks.
 */
export function putTogether({ shebang, first, rare, own }: ScriptParts): { source: string; origins: ScriptOrigin[] } {
  const lines = [shebang]
  const origins: ScriptOrigin[] = []
  const add = (parts: readonly LuaPart[]): void => {
    for (const part of parts) {
      origins.push({ line: lines.length + 1, file: part.module.file, fileLine: 1 })
      lines.push(...linesOf(part))
    }
  }
  if (first.length + rare.length > 0) {
    // With room for those that every call makes: a table that outgrows its room is made anew.
    const room = first.map(({ name }) => `${name} = nil`).join(', ')
    lines.push(`local made, make, rest = {${room && ` ${room} `}} make = setmetatable({`)
    add(first)
    lines.push('}, { __index = function(_, name) rest = rest or {')
    add(rare)
    lines.push('} return rest[name] end })')
  }
  origins.push({ line: lines.length + 1, file: own.file, fileLine: 2 })
  lines.push(...own.lines)
  return { source: lines.join('\n'), origins }
}
