-- Removes expired entries of all owners. Arguments: template, members that were unreadable some
-- time ago too. The owner of an unreadable entry is unknown; if it is alive it rewrites its part
-- within a second. So an entry is removed only if it is still unreadable after that. Until then
-- the answer names it, after the number of removed entries.
local refused = fence()
if refused then return refused end
local run, n = version()
if went_back(run, n) then return {'back'} end
local condemned, live, cool, strange = {}, {}, {}, {}
for i = FIRST + 1, #ARGV do condemned[ARGV[i]] = true end
local function judge(member)
  if condemned[member] then
    cool[#cool + 1] = member
  elseif #strange < 1000 then
    strange[#strange + 1] = member
  end
end
local infos = on('HGETALL', INFO)
for i = 1, #infos, 2 do
  local member, _, until_ = infos[i], read(infos[i + 1])
  live[member] = true
  if until_ and until_ <= now then
    cool[#cool + 1] = member
  elseif not until_ or not on('ZSCORE', HOT, member) then
    judge(member)
  end
end
for _, member in ipairs(on('ZRANGE', HOT, 0, -1)) do
  if not live[member] then judge(member) end
end
local v = run .. ':' .. whole(n)
if #cool > 0 then v = commit(run, n + 1, cool, ARGV[FIRST])[2] end
local answer = {'ok', v, whole(#cool)}
for _, member in ipairs(strange) do answer[#answer + 1] = member end
return answer
