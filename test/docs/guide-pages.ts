import { documents } from './markdown.ts'

/** What a newcomer reads: every block of code on these pages is run. */
export const guidePages = documents().filter((path) => /^(README|docs\/guides\/.*)\.md$/.test(path))

/**
 * Blocks that a test of their own runs, because they need more than the tests of all pages give them, or to show more than that
 * they run: page and language, and the test, which names both. `text` is what
 * something prints: only such a test can say whether it does.
 */
export const runElsewhere: readonly { page: string; language: string; test: string }[] = [
  { page: 'docs/guides/getting-started.md', language: 'sh', test: 'test/docs/getting-started.test.ts' },
  { page: 'docs/guides/coming-from-bullmq.md', language: 'ts', test: 'test/docs/from-bullmq.test.ts' },
  { page: 'docs/guides/redis.md', language: 'ts', test: 'test/docs/redis-guide.test.ts' },
  { page: 'docs/guides/simulate.md', language: 'sh', test: 'test/docs/simulate-guide.test.ts' },
  { page: 'docs/guides/simulate.md', language: 'text', test: 'test/docs/simulate-guide.test.ts' },
  { page: 'docs/guides/nestjs.md', language: 'sh', test: 'test/nestjs/example.test.ts' },
  { page: 'docs/guides/nestjs.md', language: 'ts', test: 'test/nestjs/example.test.ts' },
  { page: 'docs/guides/nestjs.md', language: 'text', test: 'test/nestjs/start.test.ts' },
  { page: 'docs/guides/redis.md', language: 'redis', test: 'test/docs/permissions.test.ts' },
]

export function isRunElsewhere(page: string, language: string): boolean {
  return runElsewhere.some((each) => each.page === page && each.language === language)
}
