import { BuiltPackage } from './built-package.ts'

let built: BuiltPackage | undefined

/**
 * `npm test` starts the command line hundreds of times: from a package that is built once, each start takes half the time.
 * Who runs a few files has the source, and need not wait for a build.
 */
export function setup(): void {
  if (process.env.npm_lifecycle_event === 'test' && !BuiltPackage.shared) built = BuiltPackage.share()
}

export function teardown(): void {
  built?.remove()
}
