import type { Redis } from '../redis.ts'
import { runScript } from '../script.ts'
import { moveHome as script } from '../scripts.generated.ts'

/** Compares and sets. Safe to repeat: the second time there is something else to compare with. */
export async function moveHome(store: Redis, home: string, move: { from: string; to: string }): Promise<void> {
  const redis = store.at(home)
  await redis.ready()
  await runScript(redis, script, { home }, move)
}
