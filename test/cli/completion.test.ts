import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { delimiter, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { completeWords } from '../../src/cli/completion.ts'
import { cliCommand, cliEnvironment, sluice } from './cli-process.ts'
import { folderWith, removeFolder, ServerProcess } from './server-process.ts'

/** What may stand next, without what it means. */
async function offered(...words: string[]): Promise<string[]> {
  const lines = (await completeWords(words)).trim().split('\n')
  return lines.map((line) => line.split('\t')[0] ?? '')
}

describe('completion', () => {
  it('offers commands, their commands, options and choices, and says that no file is meant', async () => {
    expect(await offered('to')).toEqual(['top', ':4'])
    expect(await offered('tenants', 'un')).toEqual(['unpark', ':4'])
    expect(await offered('actions', 'ls', '--li')).toEqual(['--limit', ':4'])
    expect(await offered('top', '--sort', 'w')).toEqual(['wait', ':4'])
    expect(await offered('completion', '')).toEqual(['bash', 'zsh', 'fish', 'powershell', ':4'])
    expect(await offered('nonsense', 'x')).toEqual([':4'])
  })

  it('leaves files to the shell where a file is meant', async () => {
    expect(await offered('run', '')).toEqual([':0'])
    expect(await offered('run', 'calls.ndjson', '--out', 'res')).toEqual([':0'])
    expect(await offered('serve', '--no-workers', '--config', '')).toEqual([':0'])
  })

  it('offers nothing, and says nothing, where only a server would know and there is none', async () => {
    const url = 'http://127.0.0.1:1'

    expect(await offered('tenants', 'pause', '--url', url, '')).toEqual([':4'])
  })
})

describe('sluice complete', () => {
  it('ends with what it has when a server never answers, and leaves no connection open', async () => {
    const server = createServer((socket) => socket.on('error', () => {}).resume())
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    const asked = once(server, 'connection')

    const completing = sluice(['complete', '--', 'tenants', 'pause', ''], {
      env: { SLUICE_URL: `http://127.0.0.1:${port}` },
    })
    await asked
    const end = await completing
    await once(server.close(), 'close')

    expect(end).toMatchObject({ code: 0, stdout: ':4\n', stderr: '' })
  })
})

describe('sluice completion', () => {
  let folder: string
  let server: ServerProcess

  beforeAll(async () => {
    folder = folderWith()
    server = await ServerProcess.start(folder, ['--queue', 'promotions,mail', '--no-workers'])
    await server.sluice(['submit', '-', '-q', 'promotions', '-t', 'acme', '--action', 'june'], {
      input: '{"payload":{"url":"http://unknown.example"}}\n',
    })
  })
  afterAll(async () => {
    await server.stop()
    await removeFolder(folder)
  })

  it('writes a script for each shell, and refuses another with 2', async () => {
    const [bash, zsh, fish, powershell, other] = await Promise.all(
      ['bash', 'zsh', 'fish', 'powershell', 'csh'].map((shell) => sluice(['completion', shell])),
    )

    expect(bash?.stdout).toContain('complete -o default -F __sluice_complete sluice')
    expect(zsh?.stdout).toMatch(/^#compdef sluice/m)
    expect(fish?.stdout).toContain('complete -c sluice')
    expect(powershell?.stdout).toContain('Register-ArgumentCompleter')
    expect(other).toMatchObject({ code: 2, stdout: '' })
    expect(other?.stderr).toMatch(/^sluice: .*csh.*Allowed choices are bash, zsh, fish, powershell.*\n$/)
  })

  it('completes names that the server knows, in a real shell', () => {
    const command = cliCommand().map((word) => `'${word}'`)
    writeFileSync(join(folder, 'sluice'), `#!/bin/sh\nexec ${command.join(' ')} "$@"\n`)
    chmodSync(join(folder, 'sluice'), 0o755)
    const complete = (line: string) => `COMP_WORDS=(${line}) COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
      __sluice_complete 2>/dev/null; echo "\${COMPREPLY[*]}"`
    const lines = [
      `sluice limits ls --queue pro`,
      `sluice tenants pause --queue promotions ''`,
      `sluice actions get ''`,
    ]

    const shell = execFileSync('bash', ['-c', `source <(sluice completion bash)\n${lines.map(complete).join('\n')}`], {
      cwd: folder,
      encoding: 'utf8',
      env: cliEnvironment({ SLUICE_URL: server.url, PATH: `${folder}${delimiter}${process.env.PATH}` }),
    })

    expect(shell).toBe('promotions\nacme\npromotions:acme:june\n')
  })
})
