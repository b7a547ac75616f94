import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { CliProcess } from './cli-process.ts'
import { folderWith, removeFolder } from './server-process.ts'

const SIGNATURE = '\x89PNG\r\n\x1a\n'

/** What stands at the beginning of a PNG: its signature, and as its first chunk what it is. */
function headOf(png: Buffer) {
  return {
    signature: png.toString('latin1', 0, 8),
    chunk: png.toString('latin1', 12, 16),
    width: png.readUInt32BE(16),
    height: png.readUInt32BE(20),
  }
}

// By its name in scripts/tools.mjs: where it is missing this file is left out.
describe('librsvg', () => {
  it('makes a PNG of the chart of a simulation, by the name of the file, two pixels for each unit', async () => {
    const folder = folderWith()
    onTestFinished(() => removeFolder(folder))
    const input = JSON.stringify({ duration: '1min', tenants: [{ name: 'acme', arrivals: { rate: '5/s' } }] })
    const drawn = async (name: string): Promise<Buffer> => {
      const path = join(folder, name)
      const { code, stderr } = await new CliProcess(['simulate', '-', '--chart', path], { input }).ended()
      expect(code, stderr).toBe(0)
      return readFileSync(path)
    }

    const [svg, png] = await Promise.all([drawn('chart.svg'), drawn('chart.PNG')])

    const [, width, height] = / width="(\d+)" height="(\d+)"/.exec(svg.toString()) ?? []
    expect(headOf(png)).toEqual({
      signature: SIGNATURE,
      chunk: 'IHDR',
      width: 2 * Number(width),
      height: 2 * Number(height),
    })
  })
})
