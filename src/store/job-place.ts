import { actionOfLane, fromToken, isOrderedLane, type Level } from './names.ts'

/** Where a job stands, as its key says it. Jobs that follow each other in one line share it. */
export interface JobPlace {
  readonly level: Level
  readonly lane: string
  readonly isOrdered: boolean
  /** The token of its lane where that is an action's; '' else. */
  readonly actionLane: string
  readonly tenant: string
  readonly tenantToken: string
}

// What stands before and behind the number in the key of the job before, and its place.
let head = ''
let tail = ''
let place: JobPlace | undefined

/**
 * Reads a job's key: `<level>:<lane>:<number>:<tenant>`. Whatever stands where a name should be is taken for one: a claim is
 * read to its end. Most jobs of a claim stand where the one before stood, and comparing texts costs less than cutting them.
 */
export function placeOfKey(key: string): JobPlace {
  if (place !== undefined && key.startsWith(head) && key.endsWith(tail)) return place
  const levelEnd = key.indexOf(':')
  const laneEnd = key.indexOf(':', levelEnd + 1)
  const numberEnd = key.indexOf(':', laneEnd + 1)
  const lane = key.slice(levelEnd + 1, laneEnd)
  const action = actionOfLane(lane)
  const isOrdered = isOrderedLane(lane)
  const tenantToken = key.slice(numberEnd + 1)
  const read: JobPlace = {
    level: key.slice(0, levelEnd) as Level,
    lane: nameOf(action ?? (isOrdered ? lane.slice(1) : lane)),
    isOrdered,
    actionLane: action === undefined ? '' : lane,
    tenant: nameOf(tenantToken),
    tenantToken,
  }
  if (laneEnd > levelEnd && numberEnd > laneEnd) {
    head = key.slice(0, laneEnd + 1)
    tail = key.slice(numberEnd)
    place = read
  }
  return read
}

function nameOf(token: string): string {
  try {
    return fromToken(token)
  } catch {
    return token
  }
}
