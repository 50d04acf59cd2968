-- Sets or removes the object's expiry. ARGV: the time in milliseconds, or '' to remove it.
--
-- Returns 1 if that was done, 0 if there is no object or it had no expiry.
local c = config()
if not c then return 0 end
local done
if ARGV[1] ~= '' then
  done = redis.call('PEXPIRE', CONFIG, ARGV[1])
else
  done = redis.call('PERSIST', CONFIG)
end
local s = open(c)
if redis.call('EXISTS', s.key) == 1 then stay(c, s) end
return done
