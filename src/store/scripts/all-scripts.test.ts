import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'

const store = useScriptStore()

const folder = new URL('.', import.meta.url)
const files = readdirSync(folder)
const names = files.filter((file) => file.endsWith('.lua')).map((file) => file.slice(0, -'.lua'.length))

function flagsOf(name: string): string {
  const [firstLine = ''] = readFileSync(new URL(`${name}.lua`, folder), 'utf8').split('\n')
  return firstLine
}

it.each(names)('%s has its decoder and its test beside it', (name) => {
  expect(files).toContain(`${name}.ts`)
  expect(files).toContain(`${name}.test.ts`)
})

it('lets every script that writes run without memory, except those that take jobs in', () => {
  const writing = names.filter((name) => !/^(read|explain)-/.test(name))

  expect(writing.filter((name) => flagsOf(name) !== '#!lua flags=allow-oom')).toEqual([
    'open-action',
    'set-schedule',
    'submit-jobs',
    'tick-schedules',
  ])
})

it('lets no script write that reads', () => {
  const reading = names.filter((name) => /^(read|explain)-/.test(name))

  expect(reading.map(flagsOf)).toEqual(reading.map(() => '#!lua flags=no-writes'))
})

it('runs on as many nodes as the project says', async () => {
  const nodes = String(await store.client.cluster('NODES'))
    .trim()
    .split('\n')

  expect(nodes).toHaveLength(process.env.SCRIPTS_RUN_ON === 'cluster-of-three' ? 3 : 1)
})
