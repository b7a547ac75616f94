import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CliProcess, sluice } from './cli-process.ts'
import { PtyProcess } from './pty-process.ts'
import { folderWith, removeFolder, ServerProcess } from './server-process.ts'

let folder: string
let server: ServerProcess

// Nothing works on it: what is shown stands still.
beforeAll(async () => {
  folder = folderWith()
  server = await ServerProcess.start(folder, ['--queue', 'web=100/s,mail', '--no-workers'])
  const jobs = Array.from({ length: 12 }, (_, at) => `${JSON.stringify({ payload: at })}\n`).join('')
  await server.sluice(['submit', '-', '-q', 'web', '-t', 'acme', '--type', 'send'], { input: jobs })
  await server.sluice(['submit', '-', '-q', 'web', '-t', 'globex', '--type', 'send'], { input: '{"payload":1}\n' })
})
afterAll(async () => {
  await server.stop()
  await removeFolder(folder)
})

const ESCAPE = '\x1b'

/** What colours and the like were asked for, each once. */
function stylesIn(raw: string): string[] {
  const codes = raw.split(`${ESCAPE}[`).flatMap((part) => /^(\d+)m/.exec(part)?.[1] ?? [])
  return [...new Set(codes)].toSorted()
}

function inTerminal(args: readonly string[], env: Readonly<Record<string, string>> = {}): PtyProcess {
  return PtyProcess.sluice(['top', ...args], { cwd: folder, env: { SLUICE_URL: server.url, ...env } })
}

describe('sluice top', () => {
  it('prints one frame of each queue as text, in the order and with the filter that are asked for', async () => {
    const [all, chosen] = await Promise.all([
      server.sluice(['top']),
      server.sluice(['top', '--once', '-q', 'web', '--sort', 'name', '--filter', 'GLO']),
    ])

    expect(all).toMatchObject({ code: 0, stderr: '' })
    expect(all.stdout).toMatch(/^queue web {2}\S+ {2}backoff .*\nwaiting 13 {2}delayed 0 {2}running 0 /)
    expect(all.stdout).toMatch(/\nqueue +queue +bucket +100 +0 .*\n\ntenant .*\nacme +ready +12 .*\nglobex +ready +1 /)
    expect(all.stdout).toMatch(/\n\nqueue mail {2}NONE .*\nwaiting 0 /)
    expect(chosen.stdout).toMatch(/\ntenant ▼ .*\nglobex /)
    expect(chosen.stdout).not.toMatch(/acme|queue mail/)
    expect(chosen.stdout).not.toContain(ESCAPE)
  })

  it('is a document for each queue with --json, and goes on with --interval until it is ended', async () => {
    const once = await server.data(['top'])
    const stream = new CliProcess(['top', '-q', 'web', '--json', '--interval', '100ms', '--url', server.url])
    await stream.wrote(/\n.*perSecond/)
    stream.signal('SIGTERM')
    const { code, stdout } = await stream.ended()
    const [first, second] = stdout.split('\n').map((line) => (line === '' ? {} : JSON.parse(line)) as object)

    expect(once).toMatchObject([
      { name: 'web', counts: { waiting: 13 }, tenants: [{ tenant: 'acme' }, {}] },
      { name: 'mail' },
    ])
    expect(code).toBe(143)
    expect(first).not.toHaveProperty('perSecond')
    expect(second).toMatchObject({ name: 'web', perSecond: { submitted: 0, failed: 0 } })
  })

  it('looks into a store without a server, and changes nothing of what its server has declared', async () => {
    const [inStore] = await server.data(['top', '--redis', 'embedded', '-q', 'web'])
    const [limit] = await server.data(['limits', 'ls', '-q', 'web'])
    const unknown = await server.sluice(['top', '--data', '.sluice', '-q', 'nowhere', '--once'])

    expect(inStore).toMatchObject({ name: 'web', counts: { waiting: 13 }, limits: [{ limit: 100 }] })
    expect(limit).toMatchObject({ limit: 100 })
    expect(unknown).toMatchObject({ code: 3, stdout: '' })
    expect(unknown.stderr).toMatch(/^sluice: The store has no queue "nowhere"/)
  })

  it('ends with 2, 3 and 8 like any other command', async () => {
    const [interval, queue, gone] = await Promise.all([
      server.sluice(['top', '--interval', '1ms']),
      server.sluice(['top', '-q', 'nowhere']),
      sluice(['top', '--url', 'http://127.0.0.1:1']),
    ])

    expect([interval.code, queue.code, gone.code]).toEqual([2, 3, 8])
  })
})

describe('sluice top in a terminal', () => {
  it('takes the screen and single keys, follows the size of the window, and gives all of it back at q', async () => {
    const top = inTerminal(['--queue', 'web'])
    await top.terminal.shows(/acme +ready +12/)
    const during = { isAlternate: top.terminal.isAlternate, settings: top.settings() }

    top.press('\x1b[B\r')
    await top.terminal.shows(/Why is acme waiting\?/)
    top.press('x')
    top.resize({ columns: 60, rows: 12 })
    await top.terminal.shows(/^sluice top(.*\n){11}.*…$/)
    const lines = top.terminal.lines
    top.press('q')

    expect(await top.ended()).toBe(0)
    expect(during).toEqual({ isAlternate: true, settings: expect.stringContaining('-icanon') })
    expect(lines).toHaveLength(12)
    await top.terminal.hides(/acme/)
    expect(top.terminal.isAlternate).toBe(false)
  })

  it('pauses and resumes a tenant from there', async () => {
    const top = inTerminal(['--queue', 'web', '--filter', 'globex'])
    await top.terminal.shows(/globex +ready/)

    top.press('jp')
    await top.terminal.shows(/Pause globex\?/)
    top.press('y')
    await top.terminal.shows(/globex +paused/)
    const [paused] = await server.data(['tenants', 'get', 'globex', '-q', 'web'])
    top.press('p')
    await top.terminal.shows(/Resume globex\?/)
    top.press('y')
    await top.terminal.shows(/globex +ready/)
    top.press('q')

    expect(paused).toMatchObject({ state: 'paused' })
    expect(await top.ended()).toBe(0)
  })

  it.each([
    { how: 'Ctrl-C', end: (top: PtyProcess) => top.press('\x03'), code: 130 },
    { how: 'SIGTERM', end: (top: PtyProcess) => top.signal('SIGTERM'), code: 143 },
    { how: 'a terminal that is closed', end: (top: PtyProcess) => top.signal('SIGHUP'), code: 143 },
  ])('gives the screen back at $how, and ends with $code', async ({ end, code }) => {
    const top = inTerminal([], { NO_COLOR: '1' })
    await top.terminal.shows(/acme/)
    top.press('j')
    await expect.poll(() => top.terminal.markedLine, { timeout: 20_000 }).toMatch(/^acme/)

    end(top)

    expect(await top.ended()).toBe(code)
    await top.terminal.hides(/acme/)
    expect(top.terminal.isAlternate).toBe(false)
    expect(top.terminal.raw).toContain(`${ESCAPE}[?25h${ESCAPE}[?1049l`)
    // Reversed is no colour.
    expect(stylesIn(top.terminal.raw)).toEqual(['0', '27', '7'])
  })

  it('gives the screen back before a crash is told, so that it can be read', async () => {
    const screen = new URL('../../src/cli/top/screen.ts', import.meta.url)
    const program = `import { Screen } from ${JSON.stringify(screen.href)}
      const screen = new Screen({ output: process.stdout, input: process.stdin, onKey() {}, onResize() {} })
      screen.open()
      screen.draw(['on the other screen'])
      setTimeout(() => { throw new Error('a mistake of ours') }, 10)`
    writeFileSync(join(folder, 'crash.ts'), program)
    const command = [process.execPath, '--import', import.meta.resolve('tsx'), join(folder, 'crash.ts')]
    const crash = new PtyProcess(command, { cwd: folder })

    expect(await crash.ended()).toBe(1)
    await crash.terminal.shows(/a mistake of ours/)
    expect(crash.terminal.isAlternate).toBe(false)
    expect(crash.terminal.raw).toContain('on the other screen')
  })
})
