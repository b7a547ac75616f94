import { describe, expect, it } from 'vitest'
import { guidePages } from './guide-pages.ts'
import { codeIn, codeRows, listedNames, read } from './markdown.ts'

const known = listedNames('docs/metrics.md')

/** Prometheus stores a histogram under its name with each of these. */
const OF_HISTOGRAM = /_(bucket|sum|count)$/

it.each(guidePages)('%s names only metrics that there are', (page) => {
  const named = Array.from(read(page).matchAll(/\bsluice_[a-z_]+/g), ([name]) => name.replace(OF_HISTOGRAM, ''))

  expect(named.filter((name) => !known.includes(name))).toEqual([])
})

/** By metric, as docs/metrics.md has them. */
const labels = new Map(
  codeRows(read('docs/metrics.md')).map(({ cells }) => [
    codeIn(cells[0]),
    Array.from((cells[2] ?? '').matchAll(/`(\w+)`/g), ([, label]) => label as string),
  ]),
)

function labelsOf(metric: string): readonly string[] {
  const own = labels.get(metric.replace(OF_HISTOGRAM, '')) ?? []
  return metric.endsWith('_bucket') ? [...own, 'le'] : own
}

/** Code in the text of the pages that asks Prometheus something. */
const expressions = [...guidePages, 'docs/metrics.md'].flatMap((page) => {
  const outsideBlocks = read(page).replaceAll(/^```[\s\S]*?^```$/gm, '')
  const spans = Array.from(outsideBlocks.matchAll(/`([^`]+)`/g), ([, text = '']) => text.replaceAll(/\s+/g, ' '))
  return spans.filter((text) => /sluice_.*[ ({]|[ ({].*sluice_/.test(text)).map((text) => ({ page, text }))
})

const OPERATOR = /\b(and|or|unless)\b|[=!<>]=|[<>+*/%^-]/
const MATCHING = /\b(?:on|ignoring) ?\(([^)]*)\)/
const CHANGES_LABELS = /\b(sum|min|max|avg|count|topk|bottomk|by|without|label_replace|label_join)\b/

/**
 * What is wrong with the labels of an expression. Two sides of an operator match by all their labels, unless it says by which:
 * where those differ, nothing ever matches, and an alert never fires.
 */
function problemsOf(text: string): string[] {
  if (CHANGES_LABELS.test(text)) return [`${text} changes labels: teach this test to follow`]
  const found = Array.from(text.matchAll(/\b(sluice_\w+)(?:\{([^}]*)\})?/g), ([, name = '', selected = '']) => ({
    name,
    selected: Array.from(selected.matchAll(/(\w+) *[=!]/g), ([, label = '']) => label),
  }))
  const unknown = found.flatMap(({ name, selected }) =>
    selected.filter((label) => !labelsOf(name).includes(label)).map((label) => `${name} has no ${label}`),
  )
  const between = text.split(/\bsluice_\w+(?:\{[^}]*\})?/).slice(1, -1)
  const unmatched = between.flatMap((words, at) => {
    const [left, right] = [found[at]?.name ?? '', found[at + 1]?.name ?? '']
    return OPERATOR.test(words) ? matchProblem(words, left, right) : [`nothing stands between ${left} and ${right}`]
  })
  return [...unknown, ...unmatched]
}

function matchProblem(words: string, left: string, right: string): string[] {
  const [, list] = MATCHING.exec(words) ?? []
  if (list !== undefined && /\bon\b/.test(words)) {
    const missing = list
      .split(/ *, */)
      .filter((label) => ![left, right].every((name) => labelsOf(name).includes(label)))
    return missing.map((label) => `${left} and ${right} do not both have ${label}`)
  }
  const ignored = list?.split(/ *, */) ?? []
  const matched = (name: string) =>
    labelsOf(name)
      .filter((label) => !ignored.includes(label))
      .toSorted()
  if (String(matched(left)) === String(matched(right))) return []
  return [`${left} and ${right} never match: say on(…) or ignoring(…)`]
}

describe('expressions for Prometheus', () => {
  it.each(expressions)('$text of $page can match', ({ text }) => {
    expect(problemsOf(text)).toEqual([])
  })

  it.each([
    ['rate(sluice_jobs_succeeded_total[5m]) == 0 and sluice_jobs{state="waiting"} > 0', /never match/],
    ['sluice_jobs and on(level) sluice_tenants', /do not both have level/],
    ['sluice_jobs{level="high"} > 5', /sluice_jobs has no level/],
    ['sum(sluice_jobs) > 5', /teach this test/],
  ])('%s would be found', (text, problem) => {
    expect(problemsOf(text)).toEqual([expect.stringMatching(problem)])
  })

  it('are those of the alerts too', () => {
    expect(expressions.filter(({ page }) => page === 'docs/guides/operating.md').length).toBeGreaterThanOrEqual(10)
  })
})

it('docs/metrics.md lists every reason for which a limit denies, and no other', () => {
  const [, list = ''] = read('docs/metrics.md').split('\n## Grants and denials\n')
  const listed = Array.from((list.split('\n## ')[0] ?? '').matchAll(/^- `([a-z]+)`:/gm), ([, reason]) => reason)

  const [, script = ''] =
    /local REASONS = ([\s\S]*?)local function denied_field/.exec(read('src/store/lua/limits.lua')) ?? []
  const given = Array.from(script.matchAll(/"([a-z]+)"/g), ([, reason]) => reason)

  expect(given).toContain('rate')
  expect(listed.toSorted()).toEqual(given.toSorted())
})
