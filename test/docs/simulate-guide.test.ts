import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { planRules, tenantRules } from '../../src/simulate/plan.ts'
import { cliCommand } from '../cli/cli-process.ts'
import { folderWith, removeFolder } from '../cli/server-process.ts'
import { codeBlocks, codeIn, codeRows, read } from './markdown.ts'
import { Shell } from './shell.ts'

const page = read('docs/guides/simulate.md')
const blocks = codeBlocks(page)

describe('docs/guides/simulate.md', () => {
  it('prints what it says it prints, command for command', async () => {
    const folder = folderWith()
    onTestFinished(() => removeFolder(folder))
    const [plan] = blocks.filter(({ language }) => language === 'json')
    writeFileSync(join(folder, 'plan.json'), plan?.text ?? '')
    const shell = new Shell(folder, { sluice: cliCommand() })
    onTestFinished(() => shell.close())

    for (const [at, block] of blocks.entries()) {
      if (block.language !== 'sh') continue
      const { code, stdout, stderr } = await shell.run(block.text)
      expect(code, stderr).toBe(0)
      const next = blocks[at + 1]
      if (next?.language === 'text') expect(stdout.trimEnd(), 'copy what it prints now').toBe(next.text.trimEnd())
    }

    expect(readFileSync(join(folder, 'plan.svg'), 'utf8')).toMatch(/^<svg /)
    expect(JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8'))).toMatchObject({
      schema: 'sluice.simulation/v1',
    })
  })

  it('lists every field of a plan and of its tenants, each once, and no other', () => {
    const listed = codeRows(page).map(({ cells }) => codeIn(cells[0]))

    expect(listed.toSorted()).toEqual([...Object.keys(planRules), ...Object.keys(tenantRules)].toSorted())
  })
})
