-- Replaces our part of the set, except for keys that have moved to another owner. Arguments: new
-- run id, template, entries. If Redis has lost changes, the version continues under the new run
-- id, unless another publisher has begun one already.
local refused = fence()
if refused then return refused end
local run, n = version()
if not run or (run == seen_run and went_back(run, n)) then run, n = ARGV[FIRST], 0 end
local given = {}
for i = FIRST + 2, #ARGV, 3 do given[ARGV[i]] = true end
local cool = {}
local infos = on('HGETALL', INFO)
for i = 1, #infos, 2 do
  if given[infos[i]] then remember(infos[i], infos[i + 1]) end
  if read(infos[i + 1]) == owner and not given[infos[i]] then cool[#cool + 1] = infos[i] end
end
write_on(FIRST + 2, #ARGV)
return commit(run, n + 1, cool, ARGV[FIRST + 1])
