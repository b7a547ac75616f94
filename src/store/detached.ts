// V8 copies shorter pieces by itself.
const SHORTEST_SLICE = 13

/**
 * The same text, for somebody who may keep it. A piece cut out of a long text points into it and keeps all of it in
 * memory: an id that a handler puts aside would keep the whole reply it came with, with the payloads of all its jobs.
 */
export function detached(piece: string): string {
  return piece.length < SHORTEST_SLICE ? piece : ` ${piece}`.slice(1)
}
