import { describeExplanation, type Explanation } from '../index.ts'
import type { Output } from './output.ts'

/** Why something waits, for people: the answer, then every gate. */
export function showExplanation(output: Output, explanation: Explanation): void {
  output.data(explanation, () => describeExplanation(explanation))
}
