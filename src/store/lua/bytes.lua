-- The order of bytes, in which Redis keeps members of one score. Lua's own comparison of texts is another one where the
-- server runs under a locale: that of a dictionary.
local bytes = {}

-- Whether text `a` stands behind text `b`.
function bytes.is_behind(a, b)
  for i = 1, math.min(#a, #b) do
    local of_a, of_b = string.byte(a, i), string.byte(b, i)
    if of_a ~= of_b then
      return of_a > of_b
    end
  end
  return #a > #b
end

return bytes
