/** What a Date can hold, before 1970 and after. */
export const farthestMs = 8.64e15

// What Date.parse makes of anything else is a guess: 5 is the first of May 2001.
const isoMoment = /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})?)?$/

/** ms since 1970. `isLocal`: it is a time without a zone, taken for one of this machine. */
interface Moment {
  readonly ms: number
  readonly isLocal: boolean
}

/** A date of ISO 8601, midnight in UTC, or with a time. Undefined when it is none of that, or the calendar has no such day. */
export function parseMoment(text: string): Moment | undefined {
  const [, date, time, , , zone] = isoMoment.exec(text) ?? []
  if (date === undefined || !isDate(date)) return undefined
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? undefined : { ms, isLocal: time !== undefined && zone === undefined }
}

/** Whether the calendar has it: Date.parse takes the 31st of February for the 3rd of March. */
function isDate(date: string): boolean {
  const ms = Date.parse(date)
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(date)
}
