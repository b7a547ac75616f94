import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

/** The number that a constant of a file is given. */
function constantOf(file: string, name: string): number {
  const [, value = ''] = new RegExp(`^const ${name} = ([\\d._]+)$`, 'm').exec(readFileSync(`src/${file}`, 'utf8')) ?? []
  return Number(value.replaceAll('_', ''))
}

it.each([
  ['GATHER_SHARE', 'worker-pool', 'GATHER_SHARE', 1],
  ['LONGEST_GATHER_US', 'worker-pool', 'LONGEST_GATHER_MS', 1_000],
  ['MOST_WANTED', 'worker-pool', 'MOST_WANTED', 1],
  ['MOST_TOLD', 'outbox', 'MOST_TOLD', 1],
])('virtual workers have the %s of the real pool', (ours, file, theirs, unit) => {
  const real = constantOf(`engine/${file}.ts`, theirs)

  expect(real).toBeGreaterThan(0)
  expect(constantOf('simulate/virtual-workers.ts', ours)).toBe(real * unit)
})
