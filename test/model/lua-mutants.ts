import { limitMutants } from './limit-mutants.ts'

/** One line of Lua changed so that the queue breaks a promise. `line` as it stands in a Lua file, without its indentation. */
export interface LuaMutant {
  readonly what: string
  readonly line: string
  readonly becomes: string
}

export const luaMutants: readonly LuaMutant[] = [
  ...limitMutants,
  {
    what: 'a repeated claim has its jobs in any order',
    line: 'table.sort(jobs, goes_before)',
    becomes: '',
  },
  {
    what: 'a deploy with other limits leaves the parked where they are',
    line: 'if q and not settings.have_same_limits(q.settings, cmsgpack.unpack(packed)) then',
    becomes: 'if false then',
  },
  {
    what: 'a zombie may finish what is no longer its own',
    line: 'local is_whole = redis.call("HLEN", ended.claim_key) == untold',
    becomes: 'local is_whole = true',
  },
  {
    what: 'a repeated request is done again',
    line: 'if tonumber(number) ~= request then',
    becomes: 'if true then',
  },
  {
    what: 'the clock stands still',
    line: 'local clock = q.clock + (step or 1)',
    becomes: 'local clock = q.clock',
  },
  {
    what: 'a tenant with new work stands at the end',
    line: 'local entry = line.weights > 0 and line.entry + 1 or queue.tick(q)',
    becomes: 'local entry = queue.tick(q)',
  },
  {
    what: 'a tenant that is ahead goes first all the same',
    line: 'if start <= entry and at.reached - rounds.reached >= quantum then',
    becomes: 'if false then',
  },
  {
    what: 'idling earns credit',
    line: 'at.reached = max(at.reached, line.reached)',
    becomes: '',
  },
  {
    what: 'every turn is a round',
    line: 'if start > rounds.round then',
    becomes: 'if true then',
  },
  {
    what: 'two claims have one fence',
    line: 'local fence = q.fence + 1',
    becomes: 'local fence = q.fence',
  },
  {
    what: 'a lease outlives its last job',
    line: 'if ended.is_all or redis.call("EXISTS", ended.claim_key) == 0 then',
    becomes: 'if false then',
  },
  {
    what: 'a lease that ran out is taken back, but its stall is not counted',
    line: 'stalls = stalls + 1',
    becomes: '',
  },
  {
    what: 'what runs is counted on another level',
    line: 'local runs, line = q.runs, q.at[standing]',
    becomes: 'local runs, line = q.runs, q.at.normal',
  },
  {
    what: 'the quantum is ignored',
    line: 'local size = q.settings.quantum * tenant.weight * 1000',
    becomes: 'local size = 4 * tenant.weight * 1000',
  },
  {
    what: 'the weight is ignored',
    line: 'local size = q.settings.quantum * tenant.weight * 1000',
    becomes: 'local size = q.settings.quantum * 1000',
  },
  {
    what: 'the guard comes a turn late',
    line: 'if q.settings.max_wait > 0 and (q.turns + 1) % GUARD_EVERY == 0 then',
    becomes: 'if q.settings.max_wait > 0 and q.turns % GUARD_EVERY == 0 then',
  },
  {
    what: 'the index of the overdue is never put right',
    line: 'at.since_corrected = true',
    becomes: '',
  },
  {
    what: 'a paused level is served',
    line: 'if not q.at[level].paused then',
    becomes: 'if true then',
  },
  {
    what: 'an ordered lane gives several jobs at once',
    line: 'local wanted = lane.is_ordered and (lane.busy and 0 or 1) or count - got',
    becomes: 'local wanted = count - got',
  },
  {
    what: 'a lane that has not been served goes behind the others',
    line: 'if line.lanes > 1 and line.served == line.lane then',
    becomes: 'if line.lanes > 1 then',
  },
  {
    what: 'a cancelled job that was met is counted as a mark for ever',
    line: 'tenant.marks = tenant.marks - 1',
    becomes: '',
  },
  {
    what: 'an id is known only in the period it was given',
    line: 'if not place and known.count_before > 0 then',
    becomes: 'if false then',
  },
  {
    what: 'delayed jobs take no room in the queue',
    line: 'room = of_queue - q.waiting - q.delayed',
    becomes: 'room = of_queue - q.waiting',
  },
  {
    what: 'a tenant that has work again expires all the same',
    line: 'redis.call("PERSIST", tenant.key)',
    becomes: '',
  },
  {
    what: 'one parked tenant less is brought back at once',
    line: 'return math.max(1, math.ceil(turns * due / (ready + due)))',
    becomes: 'return math.max(2, math.ceil(turns * due / (ready + due)))',
  },
  {
    what: 'one overdue tenant less is looked at',
    line: 'local LOOKS = "4"',
    becomes: 'local LOOKS = "3"',
  },
  {
    what: 'the wait ends with the instant of a tenant that is back in line',
    line: 'until not (tenant and tenant.parked_before)',
    becomes: 'until true',
  },
  {
    what: 'a retry costs no attempt',
    line: 'attempts, reason, error = attempts + 1, "retry", detail',
    becomes: 'reason, error = "retry", detail',
  },
  {
    what: 'dead letters are kept for ever',
    line: 'if #q.buried == 0 then',
    becomes: 'if true then',
  },
  {
    what: 'a tenant stays where it was after its turn',
    line: 'tenants.set_score(at, tenants.new_score(q, tenant))',
    becomes: '',
  },
  {
    what: 'progress counts for nothing',
    line: 'if alpha ~= 0 then',
    becomes: 'if false then',
  },
  {
    what: 'a suspect is given beside another',
    line: 'if is_suspect and q.suspect_taken then',
    becomes: 'if false then',
  },
  {
    what: 'an action completes before it is sealed',
    line: 'elseif action.sealed == 1 and action.waiting + action.running + action.delayed == 0 then',
    becomes: 'elseif action.waiting + action.running + action.delayed == 0 then',
  },
  {
    what: 'an action completes while jobs of it are delayed',
    line: 'elseif action.sealed == 1 and action.waiting + action.running + action.delayed == 0 then',
    becomes: 'elseif action.sealed == 1 and action.waiting + action.running == 0 then',
  },
  {
    what: 'a cancelled action leaves the counts of its tenant',
    line: 'tenant.waiting, q.waiting = tenant.waiting - action.waiting, q.waiting - action.waiting',
    becomes: '',
  },
  {
    what: 'the marks of a dropped lane are counted for ever',
    line: 'tenant.marks, action.marks = tenant.marks - action.marks, 0',
    becomes: 'action.marks = 0',
  },
  {
    what: 'an ordered lane stays busy when it is dropped',
    line: 'lane.is_dropped, lane.taken, lane.busy = true, lane.length, nil',
    becomes: 'lane.is_dropped, lane.taken = true, lane.length',
  },
  {
    what: 'what stood in front of a dropped lane is never freed',
    line: 'duties.add(q, "free:" .. trash, q.now)',
    becomes: '',
  },
  {
    what: 'a lane of cancelled jobs outlives its action',
    line: 'drop_lane(q, tenants.load(q, action.tenant), action)',
    becomes: '',
  },
  {
    what: 'a delayed job of an ended action runs',
    line: 'if action and actions.is_over(action) then',
    becomes: 'if false then',
  },
  {
    what: 'a job of an ended action is tried again',
    line: 'if not is_marked and not is_action_over then',
    becomes: 'if not is_marked then',
  },
  {
    what: 'an action fails at the ratio, not above it',
    line: 'return action.rules.fail_fast or (ratio ~= nil and action.sealed == 1 and action.failed > ratio * action.total)',
    becomes:
      'return action.rules.fail_fast or (ratio ~= nil and action.sealed == 1 and action.failed >= ratio * action.total)',
  },
  {
    what: 'the numbers of an action have gaps',
    line: 'lane.next = lane.action.next ~= 0 and lane.action.next or nil',
    becomes: 'lane.next = lane.length > 0 and lane.action.next or nil',
  },
  {
    what: 'a result is listed as often as it is kept',
    line: 'if not result.is_known then',
    becomes: 'if true then',
  },
  {
    what: 'an aggregate is stored whoever has the duty',
    line: 'if tonumber(redis.call("ZSCORE", duties_key, duty) or 0) ~= tonumber(fence) then',
    becomes: 'if false then',
  },
  {
    what: 'a dead letter of an ended action goes back into it',
    line: 'if action and (actions.is_over(action) or action.state == "AGGREGATING") then',
    becomes: 'if false then',
  },
  {
    what: 'what an ended action keeps never expires',
    line: 'if action.has_ended or (OVER[action.state] and (action.durations or action.results)) then',
    becomes: 'if false then',
  },
  {
    what: 'what jobs leave after the end of their action never expires',
    line: 'if action.has_ended or (OVER[action.state] and (action.durations or action.results)) then',
    becomes: 'if action.has_ended then',
  },
  {
    what: 'a tenant in line for a dropped lane is forgotten',
    line: 'if level.lanes > 0 then',
    becomes: 'if false then',
  },
  {
    what: 'jobs of a forgotten action count for another of its name',
    line: 'if not action or (sequence and tonumber(sequence) < action.created) then',
    becomes: 'if not action then',
  },
  {
    what: 'an id of one action is known in all',
    line: 'scope = "@" .. action.tenant .. ":" .. action.name, count = action.total, added = {}, new = 0,',
    becomes: 'scope = "@" .. action.tenant, count = action.total, added = {}, new = 0,',
  },
]
