/** Without the fields that are undefined: an option that is there must have a value. */
export function definedOnly<T extends object>(fields: T): { [Name in keyof T]: Exclude<T[Name], undefined> } {
  const defined = Object.entries(fields).filter(([, value]) => value !== undefined)
  return Object.fromEntries(defined) as { [Name in keyof T]: Exclude<T[Name], undefined> }
}
