-- Which queues wait for an event under a shared limit (a free slot, the first answer of a quota) rather than for an
-- instant: each has a mark with the limit. The state is "|queue,instant" of each, the longest unseen first.
local marks = {}

-- A queue that waits says so with each claim, and where jobs wait an idle process claims at least every 12 s: an older
-- mark is that of a queue without a process.
local KEPT = 15000000

-- `own` is the queue that asks; empty: none.
function marks.open(state, stored, own)
  state.waiting, state.marked, state.marks_before = {}, {}, stored
  for name, instant in string.gmatch(stored or "", "|([^,]+),(%d+)") do
    if tonumber(instant) > state.now - KEPT then
      if name ~= own then
        state.waiting[#state.waiting + 1] = name
      end
      state.marked[#state.marked + 1] = { name = name, instant = instant }
    end
  end
end

-- As it is stored once the own queue waits, or does not. nil where that makes no difference.
function marks.stored(state, own, waits)
  local texts = {}
  for _, mark in ipairs(state.marked) do
    if mark.name ~= own then
      texts[#texts + 1] = "|" .. mark.name .. "," .. mark.instant
    end
  end
  if waits then
    texts[#texts + 1] = string.format("|%s,%d", own, state.now)
  end
  local text = table.concat(texts)
  return text ~= (state.marks_before or "") and text or nil
end

return marks
