import type { Call } from './payload.ts'
import { Refusal } from './refusal.ts'

const redirects: readonly number[] = [301, 302, 303, 307, 308]

/** What another origin may know. Anything else may be a secret of the first: `authorization`, `cookie`, `x-api-key`, … */
const harmlessHeaders: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'accept-language',
  'cache-control',
  'content-language',
  'content-type',
  'idempotency-key',
  'if-modified-since',
  'if-none-match',
  'range',
  'traceparent',
  'user-agent',
])

export function isRedirect(status: number, location: unknown): location is string {
  return redirects.includes(status) && typeof location === 'string' && location !== ''
}

/** The call that follows a redirect. Throws a Refusal for one that must not be followed. */
export function redirected(call: Call, status: number, location: string): Call {
  const url = targetOf(call.url, location)
  const becomesGet = (status === 303 && call.method !== 'HEAD') || (status < 303 && call.method === 'POST')
  const isSameOrigin = url.origin === call.url.origin
  const headers = Object.fromEntries(
    Object.entries(call.headers).filter(
      ([name]) => (isSameOrigin || harmlessHeaders.has(name)) && !(becomesGet && name.startsWith('content-')),
    ),
  )
  return becomesGet ? { method: 'GET', url, headers, body: undefined } : { ...call, url, headers }
}

function targetOf(from: URL, location: string): URL {
  if (!URL.canParse(location, from.href)) throw new Refusal(`${from.host} redirects to what is no URL.`)
  const url = new URL(location, from)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new Refusal(`${from.host} redirects to ${url.protocol}, which is neither http nor https.`)
  }
  if (from.protocol === 'https:' && url.protocol === 'http:') {
    throw new Refusal(`${from.host} redirects from https to http (${url.host}), where everybody can read along.`)
  }
  if (url.username !== '' || url.password !== '') {
    throw new Refusal(`${from.host} redirects to a URL with a user name or password (${url.host}).`)
  }
  return url
}
