-- Removes what is over or cannot be read, whoever published it: template.
local refused = fence()
if refused then return refused end
local run, n = version()
if went_back(run, n) then return {'back'} end
local live, cool = {}, {}
local infos = on('HGETALL', INFO)
for i = 1, #infos, 2 do
  local _, until_ = read(infos[i + 1])
  if until_ and until_ > now and on('ZSCORE', HOT, infos[i]) then
    live[infos[i]] = true
  else
    cool[#cool + 1] = infos[i]
    live[infos[i]] = false
  end
end
for _, member in ipairs(on('ZRANGE', HOT, 0, -1)) do
  if live[member] == nil then cool[#cool + 1] = member end
end
if #cool == 0 then return {'ok', run .. ':' .. whole(n), '0'} end
local answer = commit(run, n + 1, cool, ARGV[FIRST])
return {answer[1], answer[2], whole(#cool)}
