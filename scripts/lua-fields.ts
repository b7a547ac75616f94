/** What is itself no field of something, and a field of it: two dots join texts. */
const FIELD = /(?<!\w|(?<!\.)\.)([A-Za-z_]\w*)\.(?!\.)\s*([A-Za-z_]\w*)/g

/**
 * Fields of modules that the code names and that these do not have, each with its line, from 0: a mistake that would
 * otherwise be met by whoever first comes that way.
 * @param lines - Without comments and texts.
 * @param modules - What others find in each, by the name that the code has for it.
 */
export function missingFields(
  lines: readonly string[],
  modules: ReadonlyMap<string, ReadonlySet<string>>,
): { line: number; name: string }[] {
  return lines.flatMap((text, line) =>
    [...text.matchAll(FIELD)]
      .filter(([, owner = '', field = '']) => modules.get(owner)?.has(field) === false)
      .map(([, owner, field]) => ({ line, name: `${owner}.${field}` })),
  )
}
