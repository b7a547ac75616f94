import { judge } from '../../../../scenario/judge.ts'
import type { Scenario } from '../../../../scenario/scenario.ts'

export const scenario: Scenario = {
  name: 'breaks',
  description: 'breaks its promise',

  async run() {
    return judge({ ratio: 1.5 }, { ratio: { atMost: 1.3 }, missing: { atLeast: 1 } })
  },
}
