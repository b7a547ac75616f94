import type { WindowRule } from '../../store/settings.ts'

const SECOND = 1_000_000
const HOUR = 3_600 * SECOND
const DAY = 24 * HOUR

/** The first instant of the window of now, and the first after it. As `bounds` of src/store/lua/window.lua, in µs. */
export function windowBounds(rule: WindowRule, now: number): { start: number; stop: number } {
  const { zones, window, offset } = rule
  if (!zones) {
    const start = now - modulo(now - offset, window)
    return { start, stop: start + window }
  }
  const wall = now + zoneAt(zones, now).ahead
  const into = modulo(wall - offset, window)
  if (window <= HOUR) return { start: now - into, stop: now - into + window }
  const start = fromWall(zones, wall - into)
  const stop = fromWall(zones, wall - into + window)
  // Clocks were put back behind the end of a window: what they show again belongs to the next.
  if (stop <= now) return { start: stop, stop: fromWall(zones, wall - into + 2 * window) }
  return { start, stop }
}

/** What the zone adds to UTC at an instant, and since when. */
function zoneAt(zones: readonly number[], at: number): { ahead: number; since: number } {
  let found = { ahead: 0, since: 0 }
  for (let i = 0; i < zones.length; i += 2) {
    const since = (zones[i] as number) * SECOND
    if (since > at) break
    found = { ahead: (zones[i + 1] as number) * SECOND, since }
  }
  return found
}

/** When the clock on the wall first shows it; what it never shows is where it jumps over that. */
function fromWall(zones: readonly number[], wall: number): number {
  const before = zoneAt(zones, wall - DAY).ahead
  const after = zoneAt(zones, wall + DAY).ahead
  if (zoneAt(zones, wall - before).ahead === before) return wall - before
  if (zoneAt(zones, wall - after).ahead === after) return wall - after
  return zoneAt(zones, wall - before).since
}

/** Never below 0, as in Lua. */
function modulo(value: number, by: number): number {
  return ((value % by) + by) % by
}
