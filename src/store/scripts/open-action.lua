#!lua
-- Makes an action, or finds the one of that name: whoever submits to it goes on from there. If it is to be sealed by
-- time before anybody looks again, an idle client is woken to hold the alarm for that.
-- Replies {"opened", is_new, state, sealed, received, level, lane, begun_by}, or {"unregistered"}.
local time = require "time"
local queue = require "queue"
local actions = require "actions"
local duties = require "duties"
local requests = require "requests"
local waking = require "waking"
local queue_key = KEYS[1] -- hash: the queue's state
local client_key = KEYS[2] -- hash: replies to the client's last requests
local actions_key = KEYS[3] -- zset: tenant:name → when the action was made
local events_key = KEYS[4] -- stream: what happened
local duties_key = KEYS[5] -- zset: duty → when it may be taken
local duty_tries_key = KEYS[6] -- hash: duty → how often it was tried in vain
local idle_key = KEYS[7] -- zset: client → until when it is known to wait
local alarm_key = KEYS[8] -- string: instant:client
local now_given = ARGV[1] -- µs; empty: the server's time
local request = tonumber(ARGV[2]) -- number of the client's request
local tenant = ARGV[3] -- whose it is
local name = ARGV[4] -- of the action
local rules_json = ARGV[5] -- JSON: type, level, lane, keep_results, fail_fast, max_failure_ratio, seal_timeout (µs)
local webhook = ARGV[6] -- JSON for whoever tells it, or empty
local begun_by = ARGV[7] -- what the caller knows its own action by, or empty

local FORGOTTEN_AT_ONCE = 10

-- Of a few actions of the list, those whose records are gone, with the list of their tenant. Any few, from a place that
-- depends on the clock: the oldest may be those that never end.
local function forgotten(q, key, most)
  local count = redis.call("ZCARD", key)
  local from = count > most and q.clock % count or 0
  local gone = {}
  for _, member in ipairs(redis.call("ZRANGE", key, from, from + most - 1)) do
    if redis.call("EXISTS", q.keys.prefix .. "action:" .. member) == 0 then
      local owner, short_name = string.match(member, "^([^:]*):(.*)$")
      local own_key = q.keys.prefix .. "actions:" .. owner
      redis.call("EXISTS", own_key)
      gone[#gone + 1] = { member = member, own_key = own_key, name = short_name }
    end
  end
  return gone
end

local known = requests.recall(client_key, request)
if known then
  return known
end
local q = queue.open({
  prefix = string.sub(queue_key, 1, -6), queue = queue_key, events = events_key, duties = duties_key,
  duty_tries = duty_tries_key, idle = idle_key, alarm = alarm_key,
}, time.now(now_given))
if not q then
  return { "unregistered" }
end
local action, is_new = actions.load(q, tenant, name), 0
if not action then
  is_new = 1
  local rules = cjson.decode(rules_json)
  rules.has_webhook = webhook ~= ""
  rules.aggregates = redis.call("HEXISTS", queue_key, "aggregated:" .. rules.type) == 1
  rules.keep_results = rules.keep_results or rules.aggregates
  action = actions.create(q, tenant, name, rules)
  actions.receive(q, action, 0)
  -- An earlier action of that name is forgotten, and with it whom to tell of its end.
  duties.drop(q, duties.name("webhook", action))
  local own_key = q.keys.prefix .. "actions:" .. tenant
  redis.call("EXISTS", own_key)
  local sealed_at = rules.seal_timeout > 0 and q.now + rules.seal_timeout or time.NEVER
  local sleeper = waking.find_for(q, sealed_at)
  for _, gone in ipairs(forgotten(q, actions_key, FORGOTTEN_AT_ONCE)) do
    redis.call("ZREM", actions_key, gone.member)
    redis.call("ZREM", gone.own_key, gone.name)
  end
  local made = string.format("%d", action.created)
  redis.call("ZADD", actions_key, made, tenant .. ":" .. name)
  redis.call("ZADD", own_key, made, name)
  redis.call("HSET", action.key, "rules", cmsgpack.pack(rules))
  if webhook ~= "" then
    redis.call("HSET", action.key, "webhook", webhook)
  end
  if begun_by ~= "" then
    redis.call("HSET", action.key, "begun_by", begun_by)
  end
  actions.transition(q, action, "CREATED")
  actions.save(q)
  queue.save(q)
  if sleeper then
    waking.wake(q, sleeper)
  end
else
  begun_by = redis.call("HGET", action.key, "begun_by") or ""
end
return requests.remember(client_key, request, {
  "opened", is_new, action.state, action.sealed, action.received, action.rules.level, action.rules.lane,
  begun_by,
})
