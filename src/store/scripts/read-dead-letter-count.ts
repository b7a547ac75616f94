import { type LetterSearch, type SearchReply, toSearchArguments, toSearchReply } from '../letter-search.ts'
import type { Requests } from '../requests.ts'
import { readDeadLetterCount as script } from '../scripts.generated.ts'

export async function readDeadLetterCount(requests: Requests, search: LetterSearch): Promise<SearchReply> {
  return toSearchReply(await requests.run(script, () => toSearchArguments(search)))
}
