import { dirname, join, normalize } from 'node:path'
import { describe, expect, it } from 'vitest'
import { documents, exists, read } from './markdown.ts'

/** As code hosts make them from headings. */
function anchorsOf(text: string): Set<string> {
  const headings = text.match(/^#+ .*$/gm) ?? []
  return new Set(
    headings.map((heading) =>
      heading
        .replace(/^#+ +/, '')
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .trim()
        .replace(/\s/g, '-'),
    ),
  )
}

function linksOf(text: string): string[] {
  const prose = text.replace(/^```[\s\S]*?^```/gm, '').replace(/`[^`\n]*`/g, '')
  return Array.from(prose.matchAll(/\]\(([^)\s]+)\)/g), (match) => match[1] ?? '').filter((link) => !/^\w+:/.test(link))
}

function leadsSomewhere(from: string, link: string): boolean {
  const [file = '', anchor] = link.split('#')
  const target = file === '' ? from : normalize(join(dirname(from), file))
  if (!exists(target)) return false
  return anchor === undefined || !target.endsWith('.md') || anchorsOf(read(target)).has(anchor)
}

describe.each(documents())('%s', (path) => {
  it('has no link inside the repository that leads nowhere', () => {
    const broken = linksOf(read(path)).filter((link) => !leadsSomewhere(path, link))

    expect(broken).toEqual([])
  })
})
