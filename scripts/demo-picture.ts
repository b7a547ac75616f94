/**
 * Runs the demo in a terminal and draws what it shows as docs/pictures/demo.svg: the bars at the moment the small tenants
 * have everything done, and the report at the end. `npx tsx scripts/demo-picture.ts`; needs `script`, of util-linux.
 */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const COLUMNS = 92
const [CHARACTER, LINE, MARGIN] = [8.4, 19, 18]

const ESCAPE = '\u001b'
const COLOURS: Readonly<Record<string, string>> = { 32: '#7ee787', 33: '#e3b341', 36: '#56d4dd' }

function runDemo(): string {
  const command = `stty cols ${COLUMNS} rows 40; node --import tsx src/cli/main.ts demo`
  return execFileSync('script', ['-qec', command, '/dev/null'], { cwd: root, encoding: 'utf8' })
}

/** The lines to draw, still with their colours. */
function linesOf(output: string): string[] {
  const frames = output.replaceAll('\r', '').split(new RegExp(`${ESCAPE}\\[\\dA${ESCAPE}\\[0J`))
  const smallDone = frames.find((frame) => (frame.match(/^small-\d .*100 %/gm) ?? []).length === 2)
  if (smallDone === undefined) throw new Error('the demo has shown no progress')
  const isBar = (line: string) => line.includes(' %')
  const report = (frames.at(-1) as string).split('\n').filter((line, at) => at > 2 || !isBar(line))
  // What was said between the bars.
  const said = frames.slice(0, -1).flatMap((frame) => frame.split('\n').filter((line) => line !== '' && !isBar(line)))
  return ['$ npm run demo', ...said, '', ...smallDone.split('\n').filter(isBar), ...report]
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/** One line, its coloured parts as spans. */
function spansOf(line: string): string {
  const parts = line.split(new RegExp(`${ESCAPE}\\[(\\d+)m`))
  return parts
    .map((part, at) => {
      // Between the texts stand the numbers of the colours that follow.
      if (at % 2 === 1 || part === '') return ''
      const colour = COLOURS[parts[at - 1] ?? '']
      return colour === undefined ? escaped(part) : `<tspan fill="${colour}">${escaped(part)}</tspan>`
    })
    .join('')
}

function svgOf(lines: readonly string[]): string {
  const [width, height] = [COLUMNS * CHARACTER + 2 * MARGIN, lines.length * LINE + 2 * MARGIN]
  const texts = lines.map((line, at) => {
    const y = MARGIN + (at + 0.8) * LINE
    return `  <text x="${MARGIN}" y="${y.toFixed(1)}" xml:space="preserve">${spansOf(line)}</text>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width.toFixed(0)} ${height}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14" fill="#e6edf3" role="img" aria-label="What npm run demo shows">
  <rect width="100%" height="100%" rx="8" fill="#0d1117"/>
${texts.join('\n')}
</svg>
`
}

const lines = linesOf(runDemo())
while (lines.at(-1)?.trim() === '') lines.pop()
writeFileSync(join(root, 'docs', 'pictures', 'demo.svg'), svgOf(lines))
console.log(lines.join('\n'))
