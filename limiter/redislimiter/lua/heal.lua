-- Deletes the KEYS that are of a foreign type, as the reading command in ARGV for each of them
-- reports. No other program's keys have such names. It needs no right that its callers lack,
-- because it deletes a key by setting its expiry in the past. Returns how many there were.
local healed = 0
for i, key in ipairs(KEYS) do
  local command, argument = string.match(ARGV[i], '^(%S+) ?(.*)$')
  local found = argument == '' and redis.pcall(command, key) or redis.pcall(command, key, argument)
  if type(found) == 'table' and found.err and string.find(found.err, 'WRONGTYPE', 1, true) then
    healed = healed + redis.call('PEXPIRE', key, -1)
  end
end
return healed
