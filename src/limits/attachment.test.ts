import { expect, it } from 'vitest'
import { attachLimits } from './attachment.ts'

function attach(limits: unknown) {
  const problems: string[] = []
  const rules = attachLimits(limits, 'limits', (path, problem) => problems.push(`${path} ${problem}`))
  const names = Object.fromEntries(Object.entries(rules).map(([scope, each]) => [scope, each.map(({ name }) => name)]))
  return { problems, names }
}

it('attaches none unless given', () => {
  expect(attach(undefined)).toEqual({ problems: [], names: { queue: [], high: [], normal: [], low: [], tenant: [] } })
})

it('gives a single limit the name of what it is attached to, and keeps the names of several', () => {
  const { problems, names } = attach({
    queue: '500/s',
    tenant: { fast: '5/s', slots: { kind: 'concurrency', max: 2 } },
    levels: { low: '10/s' },
    upstream: '100/s',
  })

  expect(problems).toEqual([])
  expect(names).toEqual({ queue: ['queue', 'upstream'], high: [], normal: [], low: ['low'], tenant: ['fast', 'slots'] })
})

it('reports all problems at once, each by its path', () => {
  const { problems } = attach({
    queue: 'fast',
    tenant: { 'no name!': '5/s', slots: { kind: 'concurrency' } },
    levels: { urgent: '5/s', low: 5 },
    upstream: { queue: '5/s' },
  })

  expect(problems.map((problem) => problem.split(' ')[0])).toEqual([
    'limits.queue',
    'limits.tenant.no',
    'limits.tenant.slots',
    'limits.levels.urgent',
    'limits.levels.low',
    'limits.upstream',
  ])
})

it('takes no name for a limit on the queue that was meant as what it attaches to', () => {
  expect(attach({ tenants: '5/s', Queue: '5/s', level: { low: '5/s' }, high: '5/s' }).problems).toEqual([
    'limits.tenants is not what limits attach to; did you mean "tenant"? A limit of this name on the queue is { queue: { tenants: … } }',
    'limits.Queue is not what limits attach to; did you mean "queue"? A limit of this name on the queue is { queue: { Queue: … } }',
    'limits.level is not what limits attach to; did you mean "levels"? A limit of this name on the queue is { queue: { level: … } }',
    'limits.high is a level: { levels: { high: … } }. A limit of this name on the queue is { queue: { high: … } }',
  ])
  expect(attach({ queue: { tenants: '5/s', high: '5/s' } })).toMatchObject({
    problems: [],
    names: { queue: ['tenants', 'high'] },
  })
})

it('refuses two limits of one name on the queue', () => {
  expect(attach({ queue: { upstream: '5/s' }, upstream: '6/s' }).problems).toEqual([
    'limits.upstream is given twice: a limit on the queue has this name already',
  ])
})

it.each(['5/s', 5, null, ['5/s']])('refuses %o, which is no object', (limits) => {
  expect(attach(limits).problems).toHaveLength(1)
})
