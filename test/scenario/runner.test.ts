import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { root } from '../docs/markdown.ts'

const main = fileURLToPath(new URL('../../scenario/main.ts', import.meta.url))
const madeUp = fileURLToPath(new URL('made-up', import.meta.url))

async function scenario(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, ['--import', 'tsx', main, ...args], { cwd: root })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const [code] = (await once(child, 'close')) as [number]
  return { code, stdout, stderr }
}

const runMadeUp = (...args: string[]) => scenario('engine', '--folder', madeUp, ...args)

describe('the scenario runner', () => {
  it('lists every scenario of the project with what it promises', async () => {
    const names = ['engine', 'bulk'].flatMap((group) =>
      readdirSync(new URL(`../../scenario/${group}`, import.meta.url)).map(
        (file) => `${group} ${file.replace('.ts', '')}`,
      ),
    )

    const { code, stdout } = await scenario('list')

    const lines = stdout.trimEnd().split('\n')
    expect(code).toBe(0)
    expect(lines.map((line) => line.split(/\s+/).slice(0, 2).join(' '))).toEqual(names)
    expect(lines.every((line) => / {2}\S.{20,}$/.test(line))).toBe(true)
  })

  it('ends with one JSON line and exit code 0 when all have passed', async () => {
    const { code, stdout } = await runMadeUp('--only', 'keeps', '--json')

    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      passed: 1,
      failed: 0,
      scenarios: [{ name: 'keeps', pass: true, figures: { jobs: 10 } }],
    })
  })

  it('has exit code 1 when one fails, whether it breaks a bound, throws or hangs, and ends what it started', async () => {
    const { code, stdout, stderr } = await runMadeUp('--json', '--full')

    const { scenarios, ...counts } = JSON.parse(stdout) as { scenarios: { name: string }[] }
    expect(code).toBe(1)
    expect(counts).toEqual({ passed: 1, failed: 3 })
    expect(scenarios).toEqual([
      {
        name: 'breaks',
        group: 'engine',
        pass: false,
        figures: { ratio: 1.5 },
        broken: ['ratio is 1.5, must be at most 1.3', 'missing is undefined, must be at least 1'],
        seconds: expect.any(Number),
      },
      expect.objectContaining({ name: 'hangs', pass: false, error: 'did not end within 0.1 s' }),
      expect.objectContaining({ name: 'keeps', pass: true, figures: { jobs: 1_000 } }),
      expect.objectContaining({
        name: 'throws',
        pass: false,
        error: 'out of the blue; something it started could not be ended: it clings',
      }),
    ])
    expect(stderr).toContain('hangs: ended, and was told to: true\n')
    expect(stderr).toContain('throws: last started, ended first\nthrows: first started, ended last\n')
  })

  it('prints a table without --json', async () => {
    const { code, stdout } = await runMadeUp('--only', 'keeps,breaks')

    expect(code).toBe(1)
    expect(stdout).toMatch(/^FAILED {2}breaks .*\n +ratio is 1.5, must be at most 1.3\n/)
    expect(stdout).toMatch(/\nok {6}keeps .*\n +jobs {2}10\n\n1 passed, 1 failed\n$/)
  })

  it('names the scenarios, groups and options that exist when asked for another, and runs nothing', async () => {
    const name = await runMadeUp('--only', 'keeps,kepes')
    const group = await scenario('motor', '--folder', madeUp)
    const option = await runMadeUp('--fast')

    expect([name, group, option].map(({ code, stdout }) => ({ code, stdout }))).toEqual(
      Array(3).fill({ code: 2, stdout: '' }),
    )
    expect(name.stderr).toBe('There is no scenario "kepes"; there are breaks, hangs, keeps, throws.\n')
    expect(group.stderr).toBe('There is no group "motor"; there is engine.\n')
    expect(option.stderr).toMatch(/--fast.*--only NAME,..., --full and --json\.\n$/)
  })
})
