import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { promisify } from 'node:util'
import { CliError } from '../cli-error.ts'
import { assertWritable, replaceFile } from '../written-file.ts'

const execute = promisify(execFile)

/**
 * Of librsvg. An SVG is text and needs nobody; pixels, letters above all, take a library that is larger than Sluice, and most
 * simulations are never drawn as pixels.
 */
const RASTERIZER = 'rsvg-convert'
/** Pixels a unit of the SVG: sharp also on a screen with small ones. */
const ZOOM = 2
const LARGEST_PNG_BYTES = 64 * 1024 * 1024

/** Refuses before a simulation what could not be written after it. */
export async function assertChartFile(path: string): Promise<void> {
  const kind = extname(path).toLowerCase()
  if (kind !== '.svg' && kind !== '.png') {
    throw new CliError('usage', `--chart ${path} must end in .svg or .png: that says what is drawn`)
  }
  await assertWritable(path)
  if (isPng(path)) await rasterizer(['--version'])
}

export async function writeChartFile(path: string, svg: string): Promise<void> {
  const content = isPng(path) ? await rasterizer(['--format', 'png', '--zoom', String(ZOOM)], svg) : svg
  try {
    await replaceFile(path, (draft) => writeFile(draft, content))
  } catch (error) {
    throw new CliError('usage', `the chart cannot be written: ${(error as Error).message}`, { cause: error })
  }
}

function isPng(path: string): boolean {
  return extname(path).toLowerCase() === '.png'
}

/** What it answers to the input. */
async function rasterizer(args: readonly string[], input = ''): Promise<Buffer> {
  const running = execute(RASTERIZER, args, { encoding: 'buffer', maxBuffer: LARGEST_PNG_BYTES })
  // One that is not there, or ends before it has read all, says so by how it ends.
  running.child.stdin?.on('error', () => {}).end(input)
  try {
    return (await running).stdout
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    const missing = `${RASTERIZER} draws a PNG and is not here: install it (Debian: apt-get install librsvg2-bin), or name an .svg`
    const { stderr = '' } = error as { stderr?: Buffer | string }
    const failed = `${RASTERIZER} could not draw the PNG (name an .svg instead): ${String(stderr).trim()}`
    throw new CliError('usage', isMissing ? missing : failed, { cause: error })
  }
}
