-- One change: template, how many arguments are entries, entries, cooled members.
local refused = fence()
if refused then return refused end
local run, n = version()
if went_back(run, n) then return {'back'} end
local last = FIRST + 1 + tonumber(ARGV[FIRST + 1])
local cool = {}
for i = last + 1, #ARGV do cool[#cool + 1] = ARGV[i] end
return commit(run, n + 1, FIRST + 2, last, cool, ARGV[FIRST])
