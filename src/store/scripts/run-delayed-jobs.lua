#!lua flags=allow-oom
-- Makes delayed jobs that fit a filter due now, a bounded number at once; the next claims put them at the front of
-- their lanes. Replies {"hastened", cursor, looked, made due}: the cursor is "0" when all were looked at. Or
-- {"unregistered"}.
local time = require "time"
local queue = require "queue"
local places = require "places"
local record = require "record"
local actions = require "actions"
local waking = require "waking"
local queue_key = KEYS[1] -- hash: the queue's state
local delayed_key = KEYS[2] -- zset: job → instant
local aside_key = KEYS[3] -- hash: job → record
local idle_key = KEYS[4] -- zset: client → until when it is known to wait
local now_given = ARGV[1] -- µs; empty: the server's time
local cursor = ARGV[2] -- of the step before, or 0
local looks = tonumber(ARGV[3]) -- jobs looked at, about
local tenant_wanted = ARGV[4] -- its token, or empty
local type_wanted = ARGV[5] -- type of job, or empty
local action_wanted = ARGV[6] -- name of an action, or empty
local reason_wanted = ARGV[7] -- why it waits, or empty

local q = queue.open({ prefix = string.sub(queue_key, 1, -6), queue = queue_key, idle = idle_key }, time.now(now_given))
if not q then
  return { "unregistered" }
end

local function fits_place(level, lane, name)
  return level and (tenant_wanted == "" or name == tenant_wanted)
    and (action_wanted == "" or places.action_of(lane) == action_wanted)
end

local function fits_record(job)
  if type_wanted == "" and reason_wanted == "" then
    return true
  end
  local text = redis.call("HGET", aside_key, job)
  if not text then
    return false
  end
  local _, _, _, _, reason = record.history(text)
  return (reason_wanted == "" or (reason ~= "" and reason or "scheduled") == reason_wanted)
    and (type_wanted == "" or string.match(text, "^[^\n]*\n[^\n]*\n([^\n]*)\n") == type_wanted)
end

local scanned = redis.call("ZSCAN", delayed_key, cursor, "COUNT", looks)
local due, now_text = {}, string.format("%d", q.now)
for i = 1, #scanned[2], 2 do
  local job, instant = scanned[2][i], tonumber(scanned[2][i + 1])
  local level, lane, sequence, name = places.parse(job)
  if instant > q.now and fits_place(level, lane, name) and fits_record(job) then
    local action = actions.of_lane(q, name, lane, sequence)
    -- What an action has dropped with its end goes by itself when its time comes.
    if not (action and actions.is_over(action)) then
      due[#due + 1] = now_text
      due[#due + 1] = job
    end
  end
end
local sleeper = #due > 0 and waking.find(q)

if #due > 0 then
  redis.call("ZADD", delayed_key, "XX", unpack(due))
end
if sleeper then
  waking.wake(q, sleeper)
end
return { "hastened", scanned[1], #scanned[2] / 2, #due / 2 }
