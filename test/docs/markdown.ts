import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url))

/** A file of the repository, by its path from the root. */
export function read(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}

/** Every Markdown file a reader may open, by its path from the root. */
export function documents(): string[] {
  const inDocs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).map((path) => `docs/${path}`)
  const atTop = readdirSync(root)
  return [...atTop, ...inDocs].filter((path) => path.endsWith('.md')).sort()
}

export function exists(path: string): boolean {
  return existsSync(join(root, path))
}

export interface Row {
  /** The heading the table stands under, without marks. */
  readonly heading: string
  readonly cells: readonly string[]
}

/**
 * The rows of all tables whose first cell is code (`| \`name\` | …`). That is how the documents list what a test
 * compares with the code: one thing per row, named in the first column.
 */
export function codeRows(text: string): Row[] {
  const rows: Row[] = []
  let heading = ''
  for (const line of text.split('\n')) {
    const title = /^#+ +(.*)$/.exec(line)
    if (title) heading = (title[1] ?? '').replaceAll('`', '').trim()
    if (!/^\| *`/.test(line)) continue
    const cells = line
      .replace(/^\||\|\s*$/g, '')
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim().replaceAll('\\|', '|'))
    rows.push({ heading, cells })
  }
  return rows
}

/** What stands between the first pair of backticks. */
export function codeIn(cell: string | undefined): string {
  return /`([^`]+)`/.exec(cell ?? '')?.[1] ?? ''
}

/** The names in the first column of all such tables, sorted; one that is listed twice comes twice. */
export function listedNames(path: string): string[] {
  return codeRows(read(path))
    .map(({ cells }) => codeIn(cells[0]))
    .sort()
}

export interface CodeBlock {
  /** Of the first line inside the block, counted from 1. */
  readonly line: number
  readonly language: string
  readonly text: string
}

export function codeBlocks(text: string): CodeBlock[] {
  const blocks: CodeBlock[] = []
  let open: { line: number; language: string; lines: string[] } | undefined
  for (const [index, line] of text.split('\n').entries()) {
    const fence = /^```(\S*)/.exec(line)
    if (fence && open) {
      blocks.push({ line: open.line, language: open.language, text: open.lines.join('\n') })
      open = undefined
    } else if (fence) open = { line: index + 2, language: fence[1] ?? '', lines: [] }
    else open?.lines.push(line)
  }
  return blocks
}
