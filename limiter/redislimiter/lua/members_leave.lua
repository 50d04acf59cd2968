-- Removes a member that leaves. KEYS as in members_beat.lua. ARGV: the member, its handover or
-- '', how long that lasts in milliseconds, the most handovers.
local clock = redis.call('TIME')
local now = string.format('%.0f', tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000))
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[2], 'beat', now)
if ARGV[2] ~= '' and redis.call('HLEN', KEYS[3]) < tonumber(ARGV[4]) then
  redis.call('HSET', KEYS[3], ARGV[1], now .. ' ' .. ARGV[2])
  redis.call('PEXPIRE', KEYS[3], ARGV[3])
end
return 0
