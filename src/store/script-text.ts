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
 * The text of a script: the modules it requires, and its own. Those that every call needs are made where they stand, each
 * after all that it requires. Of all that only some calls need there is one function, which makes the one it is asked for:
 * as functions of their own they would cost as much as the smaller ones of them.
 */
export function putTogether({ shebang, first, rare, own }: ScriptParts): { source: string; origins: ScriptOrigin[] } {
  const lines = [shebang]
  const origins: ScriptOrigin[] = []
  const add = (part: LuaPart): void => {
    origins.push({ line: lines.length + 1, file: part.module.file, fileLine: 1 })
    lines.push(...linesOf(part))
  }
  if (first.length + rare.length > 0) {
    // With room for those that every call makes: a table that outgrows its room is made anew.
    const room = first.map(({ name }) => `${name} = nil`).join(', ')
    lines.push(`local made, make = {${room && ` ${room} `}}`)
  }
  for (const part of first) {
    lines.push('do')
    add(part)
    lines.push('end')
  }
  if (rare.length > 0) {
    lines.push('make = function(name)')
    for (const [index, part] of rare.entries()) {
      lines.push(`${index > 0 ? 'else' : ''}if name == "${part.name}" then`)
      add(part)
    }
    lines.push('end', 'return made[name]', 'end')
  }
  origins.push({ line: lines.length + 1, file: own.file, fileLine: 2 })
  lines.push(...own.lines)
  return { source: lines.join('\n'), origins }
}
