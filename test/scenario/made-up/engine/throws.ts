import type { Scenario } from '../../../../scenario/scenario.ts'

export const scenario: Scenario = {
  name: 'throws',
  description: 'throws where nobody awaits it, and leaves something running',

  run({ log, onEnd }) {
    onEnd(() => log('first started, ended last'))
    onEnd(() => {
      throw new Error('it clings')
    })
    onEnd(() => log('last started, ended first'))
    setImmediate(() => {
      throw new Error('out of the blue')
    })
    return new Promise(() => {})
  },
}
