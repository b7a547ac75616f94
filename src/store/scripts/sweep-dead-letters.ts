import { type LetterSearch, type SearchReply, toSearchArguments, toSearchReply } from '../letter-search.ts'
import type { Requests } from '../requests.ts'
import { sweepDeadLetters as script } from '../scripts.generated.ts'

export async function sweepDeadLetters(
  requests: Requests,
  verb: 'retry' | 'discard',
  search: LetterSearch,
): Promise<SearchReply> {
  const args = (request: number) => ({ ...toSearchArguments(search), request, retries: verb === 'retry' ? 1 : 0 })
  return toSearchReply(await requests.run(script, args))
}
