import { spawn } from 'node:child_process'
import { expect, it } from 'vitest'
import { codeBlocks, read } from '../docs/markdown.ts'
import { useHttpServer } from './http-server.ts'

const server = useHttpServer()

/** Runs a script of a shell; answers what it prints. */
function run(script: string, environment: Record<string, string>): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn('sh', ['-ec', script], {
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let printed = ''
    let complaints = ''
    child.stdout.on('data', (piece) => {
      printed += piece
    })
    child.stderr.on('data', (piece) => {
      complaints += piece
    })
    child.on('error', reject)
    child.on('close', (code) => (code === 0 ? resolve(printed) : reject(new Error(`${code}: ${complaints}`))))
  })
}

it('curl alone submits 100,000 jobs, follows them and downloads their results, as docs/http.md shows', async () => {
  const { url } = await server.listen()
  server.mail.process('SEND', (job) => job.payload, { concurrency: 500 })
  const blocks = codeBlocks(read('docs/http.md')).filter(({ language }) => language === 'sh')
  const script = blocks.find(({ text }) => text.includes('curl'))
  const asPrinted = String(script?.text).replace('> results.ndjson', '| wc -l')

  const printed = await run(asPrinted, { SLUICE: url })

  expect(printed).toContain('"accepted":100000')
  expect(printed).toContain('event: end')
  expect(printed).toContain('"state":"COMPLETED"')
  expect(printed).toMatch(/\D100000\s*$/)
})
