-- Returns a snapshot, or nil if there is none or it is a foreign value. KEYS: the snapshot. ARGV:
-- the most bytes.
local value = redis.pcall('GET', KEYS[1])
if type(value) ~= 'table' then
  if value and #value > tonumber(ARGV[1]) then return false end
  return value
end
if value.err and not string.find(value.err, 'WRONGTYPE', 1, true) then return value end
return false
