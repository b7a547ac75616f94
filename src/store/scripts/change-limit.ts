import type { GroupKeys } from '../keys.ts'
import type { Requests } from '../requests.ts'
import { changeLimit as script } from '../scripts.generated.ts'
import type { LimitRule } from '../settings.ts'

/** @param change.isDeclared - It is what the code says: what an operator said is forgotten. */
export async function changeLimit(
  requests: Requests<GroupKeys>,
  change: { name: string; rule: LimitRule; isDeclared: boolean; nowUs?: string },
): Promise<void> {
  await requests.run(script, () => ({
    nowGiven: change.nowUs ?? '',
    name: change.name,
    ruleJson: JSON.stringify(change.rule),
    isDeclared: change.isDeclared ? 1 : 0,
  }))
}
