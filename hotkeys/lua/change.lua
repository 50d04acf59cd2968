-- Writes one change. Arguments: template, number of the entries' arguments, entries, cooled
-- members. A cooled key that another owner has published since then stays.
local refused = fence()
if refused then return refused end
local run, n = version()
if went_back(run, n) then return {'back'} end
local first, last = FIRST + 2, FIRST + 1 + tonumber(ARGV[FIRST + 1])
local cool = {}
for i = last + 1, #ARGV do
  local by = read(on('HGET', INFO, ARGV[i]))
  if not by or by == owner then cool[#cool + 1] = ARGV[i] end
end
if last < first and #cool == 0 then
  local v = run .. ':' .. whole(n)
  changed(v)
  return {'ok', v}
end
for i = first, last, 3 do
  remember(ARGV[i], on('HGET', INFO, ARGV[i]))
  write(ARGV[i], ARGV[i + 1], ARGV[i + 2])
end
return commit(run, n + 1, cool, ARGV[FIRST])
