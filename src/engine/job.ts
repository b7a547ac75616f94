import { type JobPlace, placeOfKey } from '../store/job-place.ts'
import type { Level } from '../store/names.ts'
import { damagedRecord, decodeRecord, type JobRecord } from '../store/record.ts'

/** A job as its handler sees it. */
export interface Job<Payload = unknown> {
  /** Given by the caller, or generated. */
  readonly id: string
  /** Names it also where it has an id of its own: the `job` of events, the `key` of its dead letter. */
  readonly key: string
  readonly tenant: string
  readonly type: string
  readonly payload: Payload
  readonly level: Level
  readonly lane: string
  /** The name of the action it was submitted with. */
  readonly action: string | undefined
  /** 1 for the first run; runs that failed are counted, pushed-back and stalled ones are not. */
  readonly attempt: number
  /** In permits of every limit it stands under. */
  readonly cost: number
  /** When it was submitted, in ms since 1970, by the producer's clock. */
  readonly createdAt: number
}

/** By the name of each limit that is a pool: its member whose budget pays for the job. */
export type GrantedBy = Readonly<Record<string, string>>

const standingPattern = /^\^(high|normal|low)(&[^\n]*)?\n/
const noGrant: GrantedBy = {}

/** A job under a lease, decoded from a claim's reply. */
export class LeasedJob implements Job {
  readonly key: string
  /** The level it stood on: another than its own where its tenant has an override. */
  readonly standing: Level
  readonly fence: string
  readonly record: JobRecord
  readonly place: JobPlace
  /** Which member of a pool granted it, by the limit's name. */
  readonly grant: GrantedBy
  /** Why its record cannot be read; undefined for every job that can run. */
  readonly damage: unknown
  /** Its action keeps what its handler returns. */
  keepsResult = false
  #payload: unknown
  #isParsed = false

  /**
   * @param text - Its record, behind `^<level>\n` where it stood on another level than its own, or
   *   `^<level>&<limit>=<member>\n` where a member of a pool granted it (see `grantOf`).
   */
  constructor(key: string, fence: string, text: string) {
    const grantedTo = text.startsWith('^') ? standingPattern.exec(text) : null
    const stored = grantedTo === null ? text : text.slice(grantedTo[0].length)
    let record: JobRecord
    let damage: unknown
    try {
      record = decodeRecord(stored)
    } catch (error) {
      record = damagedRecord(stored, error)
      damage = error
    }
    const place = placeOfKey(key)
    this.key = key
    this.fence = fence
    this.record = record
    this.damage = damage
    this.place = place
    this.standing = grantedTo === null ? place.level : (grantedTo[1] as Level)
    this.grant = grantedTo?.[2] === undefined ? noGrant : grantOf(grantedTo[2])
  }

  get level(): Level {
    return this.place.level
  }

  get lane(): string {
    return this.place.lane
  }

  get tenant(): string {
    return this.place.tenant
  }

  get tenantToken(): string {
    return this.place.tenantToken
  }

  /** Where it was submitted with an action; '' else. */
  get actionLane(): string {
    return this.place.actionLane
  }

  get action(): string | undefined {
    return this.place.action
  }

  get id(): string {
    return this.record.givenId ?? this.key
  }

  get type(): string {
    return this.record.type
  }

  get cost(): number {
    return this.record.cost
  }

  get createdAt(): number {
    return this.record.createdAt
  }

  get attempt(): number {
    return this.record.history.attempts + 1
  }

  /** Parsed when it is first asked for. */
  get payload(): unknown {
    if (!this.#isParsed) {
      this.#payload = JSON.parse(this.record.payload)
      this.#isParsed = true
    }
    return this.#payload
  }

  /** It cost more than one permit, or a pool granted it. */
  get isSpecial(): boolean {
    return this.record.cost !== 1 || this.grant !== noGrant
  }

  /** It has outlived two leases: a process runs one such job at a time, lest it takes others with it. */
  get isSuspect(): boolean {
    return this.record.history.stalls > 1
  }
}

/**
 * Of pools called the same the narrowest counts: what is learnt goes to that one.
 * @param members - `&<limit>=<member>` for each pool, `&<scope>/<limit>=<member>` where a wider one is called the same.
 */
function grantOf(members: string): GrantedBy {
  const pairs = members.slice(1).split('&')
  return Object.fromEntries(pairs.map((pair) => pair.replace(/^[^=]*\//, '').split('=')))
}

/**
 * Never throws: a job that cannot be read has `damage`, and its neighbours in the claim are read all the same.
 * @param kept - Lanes (`<lane>:<tenant>`) whose action keeps results.
 */
export function decodeJobs(fence: string, flat: readonly string[], kept: readonly string[]): LeasedJob[] {
  const jobs: LeasedJob[] = []
  for (let at = 0; at < flat.length; at += 2) {
    const job = new LeasedJob(flat[at] as string, fence, flat[at + 1] ?? '')
    if (kept.length > 0) job.keepsResult = kept.includes(`${job.actionLane}:${job.tenantToken}`)
    jobs.push(job)
  }
  return jobs
}
