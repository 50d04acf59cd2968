-- Current rates and a new end for our entries, and the heartbeat. The set does
-- not change, so the version stays.
local refused = fence()
if refused then return refused end
local run, n = version()
if went_back(run, n) then return {'back'} end
for i = FIRST, #ARGV, 3 do
  if not redis.call('ZSCORE', HOT, ARGV[i]) then return {'gone'} end
end
for i = FIRST, #ARGV, 3 do write(ARGV[i], ARGV[i + 1], ARGV[i + 2]) end
alive()
return {'ok', run .. ':' .. whole(n)}
