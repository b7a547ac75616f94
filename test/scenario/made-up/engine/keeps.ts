import { judge } from '../../../../scenario/judge.ts'
import type { Scenario } from '../../../../scenario/scenario.ts'

export const scenario: Scenario = {
  name: 'keeps',
  description: 'keeps its promise',

  async run({ full }) {
    return judge({ jobs: full ? 1_000 : 10 }, { jobs: { atLeast: 10, atMost: 1_000 } })
  },
}
