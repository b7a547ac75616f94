import { existsSync } from 'node:fs'
import { createRequire, register } from 'node:module'
import { pathToFileURL } from 'node:url'

/** Says that TypeScript can be read neither by this Node nor by a tsx of the project. */
export class NoTypeScriptError extends Error {}

/**
 * Imports a file in TypeScript, which Node can by itself from 22.18 on, and before with the tsx of the project. It is an ES
 * module whatever the package.json of its folder says: as CommonJS it could not await, and importing this package from it
 * ends in a cycle or in a second copy of half of it.
 */
export async function importTypeScript(path: string): Promise<unknown> {
  const canNode = 'typescript' in process.features && Boolean(process.features.typescript)
  // While this package is worked on, it runs by tsx itself.
  const isTsxHere = import.meta.url.endsWith('.ts')
  if (!canNode && !isTsxHere) await registerTsx(path)
  const hooks = asModules(canNode && !isTsxHere ? 'module-typescript' : 'module')
  register(`data:text/javascript,${encodeURIComponent(hooks)}`)
  return import(pathToFileURL(path).href)
}

/** The file and what it imports of its own; not what is installed. */
const asModules = (format: 'module' | 'module-typescript') => `export async function resolve(specifier, context, next) {
  const found = await next(specifier, context)
  const isOwn = /\\.ts(\\?|$)/.test(found.url) && !found.url.includes('/node_modules/')
  return isOwn ? { ...found, format: '${format}' } : found
}`

async function registerTsx(path: string): Promise<void> {
  let found: string
  try {
    found = createRequire(path).resolve('tsx/esm/api')
  } catch {
    throw new NoTypeScriptError()
  }
  // What `require` is given is CommonJS, and does not find its own files.
  const asModule = found.replace(/\.cjs$/, '.mjs')
  const api = (await import(pathToFileURL(existsSync(asModule) ? asModule : found).href)) as { register(): unknown }
  api.register()
}
