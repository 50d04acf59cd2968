-- Sets the rate. ARGV: how (try: only if none is set; set; update: only if one is set, and
-- takes stay unless client changes), rate, interval, client, keep, per.
--
-- Returns 1 if it was set, else 0.
local how, client, keep = ARGV[1], ARGV[4], tonumber(ARGV[5])
local before = config()
if (how == 'try' and before) or (how == 'update' and not before) then return 0 end
local epoch = whole(real)
if how == 'update' and before.client == client then
  epoch = before.epoch
else
  if before and before.epoch == epoch then epoch = epoch .. '+' end
  redis.call('DEL', CONFIG, SHARED, OWN)
end
redis.call('HSET', CONFIG, 'rate', ARGV[2], 'interval', ARGV[3], 'client', client, 'keep', ARGV[5], 'per', ARGV[6], 'epoch', epoch)
if keep > 0 then
  redis.call('PEXPIRE', CONFIG, ARGV[5])
elseif before and before.keep > 0 then
  redis.call('PERSIST', CONFIG)
end
local c = config()
if how == 'update' then stay(c, open(c)) end
return 1
