#!lua flags=allow-oom
-- Takes the first duty that is due and that the taker can do, for as long as a lease; to tick is none of them, see
-- take-schedules. Those who have an aggregate that the taker has not are told of it.
-- Replies {"taken", duty, fence, tries}; {"none", passed}: so many are due that the taker cannot do; {"again"}: so many
-- that there may be others behind them; or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local actions = require "actions"
local waking = require "waking"
local queue_key = KEYS[1] -- hash: the queue's state
local duties_key = KEYS[2] -- zset: duty → when it may be taken
local duty_tries_key = KEYS[3] -- hash: duty → how often it was tried in vain
local aggregators_key = KEYS[4] -- zset: client:type → until when it makes aggregates of that type
local now_given = ARGV[1] -- µs; empty: the server's time
local lease = tonumber(ARGV[2]) -- µs
local kinds = ARGV[3] -- kinds of duties the taker has hands for, separated by spaces; empty: it only tells others
local unknown_for = tonumber(ARGV[4]) -- µs: an aggregate nobody has for so long is missing, and anybody's to say so
local types, types_from = ARGV, 5 -- list: types of which the taker has the aggregate

local LOOKED_AT = 100 -- duties in one call
local PASS_ON = 1000000 -- µs: a whole page that the taker cannot do stands aside for so long, to show what is behind it
local TOLD = 8 -- processes told of an aggregate they have; those that were heard of last, the others may be gone
local HOLDERS = 1000 -- processes looked through for them

local q = queue.open({ prefix = string.sub(queue_key, 1, -6), queue = queue_key }, time.now(now_given))
if not q then
  return { "unregistered" }
end
local is_wanted, has_type = {}, {}
for kind in string.gmatch(kinds, "%l+") do
  is_wanted[kind] = true
end
for i = types_from, #types do
  has_type[types[i]] = true
end

local function holders_of(wanted)
  local found = {}
  local members = redis.call(
    "ZREVRANGEBYSCORE", aggregators_key, "+inf", string.format("(%d", q.now), "LIMIT", 0, HOLDERS
  )
  for _, member in ipairs(members) do
    local client, held = string.match(member, "^([^:]*):(.*)$")
    if held == wanted and #found < TOLD then
      found[#found + 1] = client
    end
  end
  return found
end

-- Whether the taker is to have an aggregate's duty, and who else is to be told of it.
local function judge_aggregate(duty, told)
  local tenant, name = string.match(duty, "^%l+:([^:]*):(.*)$")
  local action = actions.load(q, tenant, name)
  -- Forgotten: whoever takes it finds nothing to do.
  if not action or has_type[action.rules.type] then
    return is_wanted.aggregate
  end
  local holders = holders_of(action.rules.type)
  for _, client in ipairs(holders) do
    if not told[client] then
      told[client] = true
      redis.call("EXISTS", q.keys.prefix .. "wake:" .. client)
      told[#told + 1] = client
    end
  end
  local since = action.last_end > 0 and action.last_end or action.created
  return is_wanted.aggregate and #holders == 0 and q.now - since >= unknown_for
end

local due = redis.call("ZRANGEBYSCORE", duties_key, "-inf", string.format("%d", q.now), "LIMIT", 0, LOOKED_AT)
local is_page_full = #due == LOOKED_AT
for i, duty in ipairs(due) do
  if duty == "tick" then
    table.remove(due, i)
    break
  end
end
local taken, told = nil, {}
for _, duty in ipairs(due) do
  local kind = string.match(duty, "^%l+")
  local can_do = is_wanted[kind]
  if kind == "aggregate" then
    can_do = judge_aggregate(duty, told)
  end
  if can_do then
    taken = duty
    break
  end
end
local tries = taken and tonumber(redis.call("HGET", duty_tries_key, taken) or 0)

for _, client in ipairs(told) do
  waking.tell(q, client, "duties")
end
if taken then
  local fence = string.format("%d", q.now + lease)
  redis.call("ZADD", duties_key, fence, taken)
  return { "taken", taken, fence, tries }
end
if is_page_full and next(is_wanted) then
  for _, duty in ipairs(due) do
    redis.call("ZADD", duties_key, string.format("%d", q.now + PASS_ON), duty)
  end
  return { "again" }
end
return { "none", #due }
