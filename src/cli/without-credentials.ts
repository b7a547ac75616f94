/** A URL as it may be shown: where something is, without what lets in. A password may itself hold an `@`. */
export function withoutCredentials(url: string): string {
  return url.replace(/\/\/[^/]*@/, '//…@')
}
