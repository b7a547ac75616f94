import type { Scenario } from '../../../../scenario/scenario.ts'

export const scenario: Scenario = {
  name: 'hangs',
  description: 'never ends',
  timeLimitMs: { short: 100, full: 100 },

  run({ signal, log, onEnd }) {
    const interval = setInterval(() => {}, 1_000)
    onEnd(() => {
      clearInterval(interval)
      log(`ended, and was told to: ${signal.aborted}`)
    })
    return new Promise(() => {})
  },
}
