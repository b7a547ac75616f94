import type { LuaMutant } from './lua-mutants.ts'

/** What limits promise: buckets, windows, quotas, slots, shares, costs, and what they learn from upstreams. */
export const limitMutants: readonly LuaMutant[] = [
  {
    what: 'permits come back whoever was granted last',
    line: 'if fence_of(state) == fence then',
    becomes: 'if true then',
  },
  {
    what: 'a bucket grants one more',
    line: 'local free = floor(state.rule.burst - ahead / state.interval) - taken',
    becomes: 'local free = floor(state.rule.burst + 1 - ahead / state.interval) - taken',
  },
  {
    what: 'a bucket may save up permits without end',
    line: 'if from < before then',
    becomes: 'if true then',
  },
  {
    what: 'a restart closes no limit',
    line: 'q.restarts = q.restarts + 1',
    becomes: '',
  },
  {
    what: 'a window that was lost is empty',
    line: 'if restarts == 0 then',
    becomes: 'if false then',
  },
  {
    what: 'a slow bucket that was lost is full',
    line: 'if restarts == 0 and queue.lost_at then',
    becomes: 'if false then',
  },
  {
    what: 'turns of one claim each have all that the queue can grant',
    line: 'queue_free = queue_free - got',
    becomes: '',
  },
  {
    what: 'turns of one claim each have all that the level can grant',
    line: 'level_free = stands_on == level and level_free - got or level_free',
    becomes: '',
  },
  {
    what: 'a tenant that has used up its limit stays in line',
    line: 'elseif free == cost then',
    becomes: 'elseif false then',
  },
  {
    what: 'a tenant that has used up one of its limits waits for the first of them',
    line: 'if states[2] or state.holder or state.rule.members then',
    becomes: 'if false then',
  },
  {
    what: 'a job takes as many slots as it costs',
    line: 'if states[2] or state.holder or state.rule.members then',
    becomes: 'if states[2] or state.rule.members then',
  },
  {
    what: 'a strict share is not asked again once it has granted',
    line: 'if q.limits.active or q.group or free < cost then',
    becomes: 'if free < cost then',
  },
  {
    what: 'a level has no limits of its own',
    line: 'if of_level == 0 then',
    becomes: 'if false then',
  },
  {
    what: 'stale grants teach nothing',
    line: 'if share > TOO_STALE then',
    becomes: 'if false then',
  },
  {
    what: 'a tenant stays parked though its permit came back',
    line: 'standing.unpark(q, tenant)',
    becomes: '',
  },
  {
    what: 'a window never ends',
    line: 'if tonumber(last) >= state.start then',
    becomes: 'if true then',
  },
  {
    what: 'a window grants one more',
    line: 'return max(0, state.rule.count - state.used)',
    becomes: 'return max(0, state.rule.count + 1 - state.used)',
  },
  {
    what: 'a window grants in its last moments',
    line: 'if state.closed_until > state.now or state.now >= state.stop - state.jitter then',
    becomes: 'if state.closed_until > state.now then',
  },
  {
    what: 'a window takes back what another granted',
    line: 'if fence >= state.start and state.used > 0 then',
    becomes: 'if state.used > 0 then',
  },
  {
    what: 'a window knows no clocks that are put back',
    line: 'if stop <= now then',
    becomes: 'if false then',
  },
  {
    what: 'a restart costs a window nothing',
    line: 'state.used = state.used + ceil(RESTART_LOSS * rule.count / rule.window)',
    becomes: '',
  },
  {
    what: 'a quota keeps nothing over',
    line: 'return max(0, member.remaining - threshold(state, member))',
    becomes: 'return max(0, member.remaining)',
  },
  {
    what: "a quota's threshold may be all there is",
    line: 'return min(state.rule.threshold, floor(member.limit / 10))',
    becomes: 'return state.rule.threshold',
  },
  {
    what: 'all jobs go out to ask',
    line: 'return member.flying == 0 and 1 or 0',
    becomes: 'return 1',
  },
  {
    what: 'an answer that was counted before others says what is left',
    line: 'elseif remaining < member.told and reset >= member.reset - SAME then',
    becomes: 'elseif reset >= member.reset - SAME then',
  },
  {
    what: 'an answer of an earlier start-over says what is left',
    line: 'elseif remaining < member.told and reset >= member.reset - SAME then',
    becomes: 'elseif remaining < member.told then',
  },
  {
    what: 'an answer raises what is left',
    line: 'member.remaining = min(member.remaining, left)',
    becomes: 'member.remaining = left',
  },
  {
    what: 'what is in flight is not taken off',
    line: 'local left = max(0, remaining - member.flying)',
    becomes: 'local left = remaining',
  },
  {
    what: 'two instants are never the same',
    line: 'if member.remaining == UNKNOWN or reset > member.reset + SAME then',
    becomes: 'if member.remaining == UNKNOWN or reset > member.reset then',
  },
  {
    what: 'an answer that is over counts',
    line: 'if not member or reset <= state.now then',
    becomes: 'if not member then',
  },
  {
    what: 'a job in flight is never back',
    line: 'member.flying = max(0, member.flying - permits)',
    becomes: '',
  },
  {
    what: 'jobs that ended unheard are in flight for ever',
    line: 'member.flying = 0',
    becomes: '',
  },
  {
    what: 'any member of a pool grants',
    line: 'if left > most and instant(state, member, permits) == 0 then',
    becomes: 'if instant(state, member, permits) == 0 then',
  },
  {
    what: 'further calls are paid by the richest member',
    line: 'return find(state, name or "") or richest(state, permits)',
    becomes: 'return richest(state, permits)',
  },
  {
    what: 'every answer cuts',
    line: 'if fence >= known.cut_at then',
    becomes: 'if true then',
  },
  {
    what: 'the rate never climbs',
    line: 'local climbed = max(0, state.now - since) / SECOND * CLIMB',
    becomes: 'local climbed = 0',
  },
  {
    what: 'the rate does not rest where it was pushed back',
    line: 'local climbed_on = climbed - (held - state.share) - HELD_FOR / SECOND * CLIMB',
    becomes: 'local climbed_on = climbed - (held - state.share)',
  },
  {
    what: 'a cut frees a part of the burst',
    line: 'if interval ~= state.interval and state.tat > state.now then',
    becomes: 'if false then',
  },
  {
    what: 'an upstream closes for as long as it likes',
    line: 'local closed_until = for_us > 0 and q.now + math.min(for_us, q.settings.max_close or MAX_CLOSE) or 0',
    becomes: 'local closed_until = for_us > 0 and q.now + for_us or 0',
  },
  {
    what: "the queue's limits learn before the tenant's",
    line: 'local scopes = { own(limits.of_tenant(q, tenant)), q.limits[level], q.limits.queue }',
    becomes: 'local scopes = { q.limits.queue, q.limits[level], own(limits.of_tenant(q, tenant)) }',
  },
  {
    what: 'a job costs one, whatever it says',
    line: 'return tonumber(match(text, "^%*(%d+);")) or 1',
    becomes: 'return 1',
  },
  {
    what: 'a turn is as long as there are permits',
    line: 'if budget.spent >= budget.rest or (budget.spent > 0 and budget.spent + cost > budget.permits) then',
    becomes: 'if budget.spent > 0 and budget.spent + cost > budget.permits then',
  },
  {
    what: 'others take what is saved up',
    line: 'if instant(states, cost) > q.now then',
    becomes: 'if instant(states, 1) > q.now then',
  },
  {
    what: 'what was saved up is forgotten',
    line: 'local most = queue.has_costs and rule.count or rule.burst',
    becomes: 'local most = rule.burst',
  },
  {
    what: 'a job that no limit can grant is accepted',
    line: 'if record.cost(lines[at + 5 + (job + 1) * width]) > largest then',
    becomes: 'if false then',
  },
  {
    what: 'strict shares are those of one',
    line: 'local share = max(1 / active, 1 / per_window) / pace',
    becomes: 'local share = 1 / pace',
  },
  {
    what: "what rounding leaves is nobody's",
    line: 'return state.used <= state.rule.count and state.whole.extra < state.left_over',
    becomes: 'return false',
  },
  {
    what: "what rounding leaves is everybody's",
    line: 'state.whole.extra, state.whole.changed = state.whole.extra + 1, true',
    becomes: '',
  },
  {
    what: 'a kind goes on where another stopped',
    line: 'return kind == "bucket" and name or name .. "/" .. kind',
    becomes: 'return name',
  },
  {
    what: 'a level whose limit is used up has turns for the overdue',
    line: 'if not saves_up(q.claim, level) and granting.available(q, level) > 0 then',
    becomes: 'if true then',
  },
  {
    what: 'tenants that come back take what their level saves up',
    line: 'if not q.claim.is_closed and not saves_up(q.claim, level) then',
    becomes: 'if not q.claim.is_closed then',
  },
  {
    what: 'what costs more is passed by another level of its tenant',
    line: 'local is_saved_for = budget and (budget.need or budget.is_used_up)',
    becomes: 'local is_saved_for = false',
  },
  {
    what: 'what costs more is one when it goes stale',
    line: 'jitter.stale(state.known, q.now, permits)',
    becomes: 'jitter.stale(state.known, q.now)',
  },
  {
    what: 'a tenant waits for the instant of a quota that grants before it',
    line: 'if meters.named({ states }, tenant.fields.parked, "quota") and limits.available(states) > 0 then',
    becomes: 'if false then',
  },
  {
    what: 'a cost is measured by the level it was submitted on',
    line: 'largest, name = most(of_queue[tenant.fields.override or level], largest, name, counts)',
    becomes: 'largest, name = most(of_queue[level], largest, name, counts)',
  },
]
