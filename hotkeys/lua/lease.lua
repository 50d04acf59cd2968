-- Holds the owner for another lease (1), as all scripts do that pass the fence, or
-- lets go of it (0), so that another need not wait for its end.
local refused = fence()
if refused then return refused end
if ARGV[FIRST] == '0' then call('HDEL', OWNERS, owner .. ':holder', owner .. ':until') end
return {'ok'}
