import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { codeBlocks, read, root } from './markdown.ts'

/** A program made of the blocks of one document, with the line numbers of the document. */
export interface Snippet {
  readonly fileName: string
  readonly text: string
}

/**
 * Every `ts` block of a document is a program, or continues one: a block with an import starts a program, one without
 * continues the program before it, in a scope of its own, so that two blocks may use the same names.
 */
export function snippetsOf(path: string): Snippet[] {
  const programs: string[][] = []
  for (const block of codeBlocks(read(path)).filter(({ language }) => language === 'ts')) {
    const lines = block.text.split('\n')
    const startsProgram = lines.some((line) => line.startsWith('import '))
    const current = programs.at(-1)
    if (startsProgram || current === undefined) programs.push(placed([], block.line, lines))
    else {
      placed(current, block.line, [`{ ${lines[0] ?? ''}`, ...lines.slice(1)])
      // On the line of the closing fence.
      current.push('}')
    }
  }
  const name = path.replace(/[^a-z0-9]+/gi, '-')
  return programs.map((lines, index) => ({
    fileName: `${name}-${index + 1}.mts`,
    text: `${lines.join('\n')}\nexport {}\n`,
  }))
}

/** Fills up with empty lines until the next line is number `line`, then adds the lines. */
function placed(program: string[], line: number, lines: readonly string[]): string[] {
  while (program.length < line - 1) program.push('')
  program.push(...lines)
  return program
}

/** A temporary project in which `sluice` means the source. */
export function snippetProject(snippets: readonly Snippet[]): { folder: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-snippets-'))
  for (const { fileName, text } of snippets) writeFileSync(join(folder, fileName), text)
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const configuration = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions: {
      paths: {
        sluice: [join(root, 'src/index.ts')],
        'sluice/*': [join(root, 'src/*/index.ts')],
      },
    },
    include: ['*.mts'],
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(configuration))
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
