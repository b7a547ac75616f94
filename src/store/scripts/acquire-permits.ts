import type { Level } from '../names.ts'
import type { Requests } from '../requests.ts'
import { acquirePermits as script } from '../scripts.generated.ts'

/** Grants of an earlier call that came too late to be used. */
export interface StaleGrants {
  readonly fence: string
  readonly permits: number
  /** Which members of pools granted how many of them. */
  readonly members: readonly { readonly limit: string; readonly member: string; readonly permits: number }[]
}

/** Many callers who ask the same limits. */
export interface AcquireRequest {
  readonly limits: readonly string[]
  readonly level: Level
  /** Of each caller. */
  readonly permits: readonly number[]
  readonly stale: StaleGrants | undefined
  readonly giveUpAfterMs?: number
  readonly nowUs?: string
}

/** What callers in a row are answered who asked for the same. */
export interface AcquireAnswer {
  /** How many. */
  readonly callers: number
  readonly isGranted: boolean
  readonly waitUs: number
  /** What could be granted to others after the last of them; undefined: an upstream has not told. */
  readonly remaining: number | undefined
  /** Which members of pools granted, by limit. */
  readonly grant: Readonly<Record<string, string>>
}

export type AcquireReply =
  | {
      readonly word: 'answers'
      readonly fence: string
      /** For how long the grants keep from when the call was sent; undefined: for ever. */
      readonly freshMs: number | undefined
      /** In the order of the callers, all of them. */
      readonly answers: readonly AcquireAnswer[]
    }
  | { readonly word: 'costly'; readonly limit: string; readonly most: number }
  | { readonly word: 'unknown' | 'slots'; readonly limit: string }

const WIDTH = 5

export type Acquire = (request: AcquireRequest) => Promise<AcquireReply>

/** Limits attached to a queue, or to one of its levels. */
export function acquirePermits(requests: Requests, request: AcquireRequest): Promise<AcquireReply> {
  return acquire(requests, request, (args, options) => requests.run(script, args, options))
}

type Arguments = (
  request: number,
  server: string,
) => {
  nowGiven: string
  request: number
  server: string
  knownSince: string
  level: string
  staleFence: number
  stalePermits: number
  staleMembers: string
  names: number
  asked: (string | number)[]
}

/** How both scripts are called and decoded. */
export async function acquire(
  requests: { readonly knownSince: string },
  { limits, level, permits, stale, nowUs = '', giveUpAfterMs }: AcquireRequest,
  run: (args: Arguments, options: { giveUpAfterMs?: number }) => Promise<readonly unknown[]>,
): Promise<AcquireReply> {
  const asked = askedOf(limits, permits)
  const args: Arguments = (request, server) => ({
    nowGiven: nowUs,
    request,
    server,
    knownSince: requests.knownSince,
    level,
    staleFence: Number(stale?.fence ?? 0),
    stalePermits: stale?.permits ?? 0,
    staleMembers: (stale?.members ?? []).map((each) => `${each.limit}=${each.member}=${each.permits}`).join('&'),
    names: limits.length,
    asked,
  })
  return decode(await run(args, giveUpAfterMs === undefined ? {} : { giveUpAfterMs }))
}

/** The limits, and then how many callers in a row ask for how many permits: mostly one pair for all of them. */
function askedOf(limits: readonly string[], permits: readonly number[]): (string | number)[] {
  const asked: (string | number)[] = [...limits]
  let from = 0
  for (let at = 1; at <= permits.length; at++) {
    if (permits[at] === permits[from]) continue
    asked.push(at - from, permits[from] as number)
    from = at
  }
  return asked
}

function decode(reply: readonly unknown[]): AcquireReply {
  const [word, first] = reply as [string, string]
  if (word === 'costly') return { word, limit: first, most: reply[2] as number }
  if (word === 'unknown' || word === 'slots') return { word, limit: first }
  const [, fence, freshUs, flat] = reply as [string, string, number, (number | string)[]]
  const answers: AcquireAnswer[] = []
  for (let at = 0; at < flat.length; at += WIDTH) answers.push(decodeAnswer(flat, at))
  return { word: 'answers', fence, freshMs: freshUs > 0 ? freshUs / 1000 : undefined, answers }
}

const noGrant = Object.freeze({})

function decodeAnswer(flat: readonly (number | string)[], at: number): AcquireAnswer {
  const remaining = flat[at + 3] as number
  const grants = flat[at + 4] as string
  return {
    callers: flat[at] as number,
    isGranted: flat[at + 1] === 1,
    waitUs: flat[at + 2] as number,
    remaining: remaining < 0 ? undefined : remaining,
    grant: grants === '' ? noGrant : Object.fromEntries(grants.split('&').map((each) => each.split('='))),
  }
}
