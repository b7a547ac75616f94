import { actionOfLane, fromToken, isOrderedLane, type Level } from './names.ts'

/** Where a job stands, as its key says it: `<level>:<lane>:<number>:<tenant>`. */
export interface JobPlace {
  readonly level: Level
  /** Of an action: its name. */
  readonly lane: string
  readonly isOrdered: boolean
  readonly action: string | undefined
  /** The token of its lane where that is an action's; '' else. */
  readonly actionLane: string
  readonly tenant: string
  readonly tenantToken: string
}

const keyPattern = /^(high|normal|low):[^:]*:\d+:.+$/s

/** A generated id is the job's key and names its place. Undefined for an id given by a caller. */
export function parseJobKey(id: string): JobPlace | undefined {
  return keyPattern.test(id) ? readPlace(id, partsOf(id)) : undefined
}

// What stands before and behind the number in the key of the job before, and its place.
let head = ''
let tail = ''
let place: JobPlace | undefined

/**
 * The place of a job that the store has named. Most jobs of a claim stand where the one before stood: they share it, for
 * comparing texts costs less than cutting them.
 */
export function placeOfKey(key: string): JobPlace {
  if (place !== undefined && key.startsWith(head) && key.endsWith(tail)) return place
  const parts = partsOf(key)
  const { levelEnd, laneEnd, numberEnd } = parts
  const read = readPlace(key, parts)
  if (laneEnd > levelEnd && numberEnd > laneEnd) {
    head = key.slice(0, laneEnd + 1)
    tail = key.slice(numberEnd)
    place = read
  }
  return read
}

/** Where each but the last of its parts ends. */
interface KeyParts {
  readonly levelEnd: number
  readonly laneEnd: number
  readonly numberEnd: number
}

function partsOf(key: string): KeyParts {
  const levelEnd = key.indexOf(':')
  const laneEnd = key.indexOf(':', levelEnd + 1)
  return { levelEnd, laneEnd, numberEnd: key.indexOf(':', laneEnd + 1) }
}

/** Whatever stands where a name should be is taken for one: a claim is read to its end. */
function readPlace(key: string, { levelEnd, laneEnd, numberEnd }: KeyParts): JobPlace {
  const token = key.slice(levelEnd + 1, laneEnd)
  const actionToken = actionOfLane(token)
  const isOrdered = isOrderedLane(token)
  const lane = nameOf(actionToken ?? (isOrdered ? token.slice(1) : token))
  const tenantToken = key.slice(numberEnd + 1)
  return {
    level: key.slice(0, levelEnd) as Level,
    lane,
    isOrdered,
    action: actionToken === undefined ? undefined : lane,
    actionLane: actionToken === undefined ? '' : token,
    tenant: nameOf(tenantToken),
    tenantToken,
  }
}

function nameOf(token: string): string {
  try {
    return fromToken(token)
  } catch {
    return token
  }
}
