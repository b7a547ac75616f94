import { expect, it } from 'vitest'
import { codeIn, codeRows, type Row, read } from './markdown.ts'

/** Tables of docs/options.md that say what one job or call is, what it returns, or the same once more: nothing to tune. */
const notSettings = [
  'RedisOptions',
  'ActionInput',
  'SubmitOptions',
  'JobInput',
  'HttpRequestPayload',
  'HttpRequestResult',
  'What an answer means',
]

/** Heading, name and default of each row; of a name that stands twice under a heading (kinds of limits) the first. */
function settingsOf(rows: readonly Row[]): string[] {
  const named = rows.map(({ heading, cells }) => ({ heading, name: codeIn(cells[0]), value: cells[1] }))
  const isSetting = ({ heading, name }: (typeof named)[number]) =>
    !notSettings.includes(heading) && /^[a-z][\w.]*$/.test(name)
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
  expect(settingsOf(codeRows(read('docs/guides/tuning.md')))).toEqual(settings)
})

it('docs/guides/tuning.md says of every setting when to change it', () => {
  const silent = codeRows(read('docs/guides/tuning.md')).filter(({ cells }) => !cells[2] || !cells[3])

  expect(silent).toEqual([])
})
