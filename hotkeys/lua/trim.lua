-- Removes changes older than the argument, in milliseconds, from the stream. Before Redis
-- 6.2, which lacks MINID, only the cap bounds the stream.
local refused = fence()
if refused then return refused end
local run, n = version()
if went_back(run, n) then return {'back'} end
redis.pcall('XTRIM', EVENTS, 'MINID', whole(now - tonumber(ARGV[FIRST])) .. '-0')
return {'ok', run .. ':' .. whole(n)}
