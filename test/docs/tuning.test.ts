import { expect, it } from 'vitest'
import { codeIn, codeRows, type Row, read } from './markdown.ts'
import { literalValue, OptionSources } from './option-tables.ts'

const page = codeRows(read('docs/guides/tuning.md'))

/** Tables of docs/options.md that say what one job or call is, what it returns, or the same once more: nothing to tune. */
const notSettings = [
  'RedisOptions',
  'SubmitOptions',
  'JobInput',
  'HttpRequestPayload',
  'HttpRequestResult',
  'What an answer means',
]

/** Fields of an action that say what it is, not how it is done. */
const notOfActions = ['tenant', 'jobs', 'action', 'from', 'begunBy', 'webhook']

/** Compared with other pages, or with the code. */
const notOfOptions = ['ServerOptions', 'SluiceModuleOptions']

/** Heading, name and default of each row; of a name that stands twice under a heading (kinds of limits) the first. */
function settingsOf(rows: readonly Row[]): string[] {
  const named = rows.map(({ heading, cells }) => ({ heading, name: codeIn(cells[0]), value: cells[1] }))
  const isSetting = ({ heading, name }: (typeof named)[number]) =>
    !notSettings.includes(heading) &&
    !(heading === 'ActionInput' && notOfActions.includes(name)) &&
    /^[a-z][\w.]*$/.test(name)
  const first = new Map<string, string>()
  for (const { heading, name, value } of named.filter(isSetting)) {
    const key = `${heading} ${name}`
    if (!first.has(key)) first.set(key, `${key}: ${value}`)
  }
  return [...first.values()]
}

it('docs/guides/tuning.md has every setting of docs/options.md with its default, and no other', () => {
  const settings = settingsOf(codeRows(read('docs/options.md')))

  expect(settings.length).toBeGreaterThan(60)
  expect(settingsOf(page.filter(({ heading }) => !notOfOptions.includes(heading)))).toEqual(settings)
})

it('docs/guides/tuning.md has every option of the server as docs/http.md has them, and no other', () => {
  const options = codeRows(read('docs/http.md')).filter(({ heading }) => heading === 'Options')
  const asHere = options.map((row) => ({ ...row, heading: 'ServerOptions' }))

  expect(options.length).toBeGreaterThan(15)
  expect(settingsOf(page.filter(({ heading }) => heading === 'ServerOptions'))).toEqual(settingsOf(asHere))
})

it('docs/guides/tuning.md has every option that NestJS adds, with its default, and no other', () => {
  const sources = new OptionSources()
  const ofSluice = sources.documented('SluiceOptions')
  const added = [...sources.documented('SluiceModuleOptions')].filter(([name]) => !ofSluice.has(name))

  const rows = page.filter(({ heading }) => heading === 'SluiceModuleOptions')
  expect(rows.map(({ cells }) => [codeIn(cells[0]), literalValue(codeIn(cells[1]))])).toEqual(added)
})

it('docs/guides/tuning.md says of every setting when to change it', () => {
  const silent = page.filter(({ cells }) => !cells[2] || !cells[3])

  expect(silent).toEqual([])
})
