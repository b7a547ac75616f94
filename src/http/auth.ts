import type { FastifyRequest } from 'fastify'
import { anyOf } from '../assert.ts'
import type { Caller, KeyRefusal, KeyRing } from './api-keys.ts'
import { isLoopback } from './binding.ts'
import { Problem } from './problem.ts'

const local: Caller = { id: 'local', role: 'admin', tenant: undefined, queues: undefined }

/**
 * Finds out who sends a request. Nothing is refused here, so that the rate limit counts also those who have no key or
 * a wrong one; `authorize` comes after it.
 */
export function authenticate(keys: KeyRing, request: FastifyRequest): void {
  if (keys.isEmpty) {
    request.caller = isFromHere(request) ? local : undefined
    return
  }
  const header = request.headers.authorization
  if (header === undefined) return
  const key = /^Bearer +(\S+)$/i.exec(header)?.[1]
  const found = key === undefined ? 'malformed' : keys.find(key, Date.now())
  if (typeof found === 'string') request.refusal = found
  else request.caller = found
}

/**
 * A server without keys trusts its own machine, and a browser on it runs pages of strangers. Those say by Origin where
 * they come from; one that has bound its own name to this address says so by Host. Both say what the sender likes, so the
 * connection itself must come from here.
 */
function isFromHere(request: FastifyRequest): boolean {
  const { host, origin } = request.headers
  if (!isLocalPeer(request)) return false
  return hostIsLoopback(`http://${host}`) && (origin === undefined || hostIsLoopback(origin))
}

/** Of the connection, not of what a proxy says about it. */
function isLocalPeer({ raw, server }: FastifyRequest): boolean {
  const { remoteAddress } = raw.socket
  if (remoteAddress !== undefined) return isLoopback(remoteAddress)
  // A socket in the file system has no addresses; one of the network that is gone already has lost its own.
  return typeof server.server.address() === 'string'
}

function hostIsLoopback(url: string): boolean {
  return URL.canParse(url) && isLoopback(new URL(url).hostname)
}

const refusals: Readonly<Record<KeyRefusal, string>> = {
  malformed: 'The Authorization header must be "Bearer slk_…" with an API key.',
  unknown: 'This API key is not known.',
  expired: 'This API key has expired.',
}

/** Lets a request through to its route, or throws. */
export function authorize(keys: KeyRing, request: FastifyRequest): void {
  const { access } = request.routeOptions.config
  if (request.is404 || access === undefined || access === 'anybody') return
  const { caller } = request
  if (!caller) throw keys.isEmpty ? notFromHere() : unauthorized(request.refusal)
  if (access.includes(caller.role)) return
  throw new Problem('forbidden', `A key of role ${caller.role} may not do this; it takes ${anyOf(access)}.`)
}

function unauthorized(refusal: KeyRefusal | undefined): Problem {
  const detail = refusal ? refusals[refusal] : 'Send an API key: "Authorization: Bearer slk_…".'
  const challenge = refusal === undefined ? 'Bearer' : 'Bearer error="invalid_token"'
  return new Problem('unauthorized', detail, { headers: { 'www-authenticate': challenge } })
}

function notFromHere(): Problem {
  return new Problem(
    'forbidden',
    'This server has no API keys and answers only requests made to localhost by this machine. Add a key to let others in.',
  )
}
