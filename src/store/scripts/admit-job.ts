import type { Requests } from '../requests.ts'
import { admitJob as script } from '../scripts.generated.ts'

export type AdmitReply =
  /** The permit keeps this long from when the call was sent; undefined: for ever. */
  | { readonly word: 'admitted'; readonly freshMs: number | undefined }
  | { readonly word: 'wait'; readonly waitMs: number }
  | { readonly word: 'stale' }

export async function admitJob(
  requests: Requests,
  job: { fence: string; jobKey: string; standing: string; nowUs?: string },
): Promise<AdmitReply> {
  const reply = await requests.run(script, (request, server) => ({
    nowGiven: job.nowUs ?? '',
    request,
    server,
    fence: job.fence,
    job: job.jobKey,
    standing: job.standing,
  }))
  const [word, us] = reply as ['admitted' | 'wait' | 'stale', number]
  switch (word) {
    case 'admitted':
      return { word, freshMs: us === 0 ? undefined : us / 1000 }
    case 'wait':
      return { word, waitMs: us / 1000 }
    case 'stale':
      return { word }
  }
}
