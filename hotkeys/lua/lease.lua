-- Extends the lease (1), as all scripts that pass the fence do, or releases the owner (0),
-- so that a standby need not wait for the end of the lease.
local refused = fence()
if refused then return refused end
if ARGV[FIRST] == '0' then call('HDEL', OWNERS, owner .. ':holder', owner .. ':until') end
return {'ok'}
