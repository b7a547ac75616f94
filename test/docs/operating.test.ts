import { expect, it } from 'vitest'
import { guidePages } from './guide-pages.ts'
import { listedNames, read } from './markdown.ts'

const known = listedNames('docs/metrics.md')

/** Prometheus stores a histogram under its name with each of these. */
const OF_HISTOGRAM = /_(bucket|sum|count)$/

it.each(guidePages)('%s names only metrics that there are', (page) => {
  const named = Array.from(read(page).matchAll(/\bsluice_[a-z_]+/g), ([name]) => name.replace(OF_HISTOGRAM, ''))

  expect(named.filter((name) => !known.includes(name))).toEqual([])
})
