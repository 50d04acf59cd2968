package mutants

// Faults in an instance's part of a limit that the fleet shares.

var fleetFaults = []Fault{
	{
		Name: "limits of hot keys are each instance's by default", File: "middleware/limitspec.go",
		Old: "scoped.Scope = rules.ScopeFleet", New: "scoped.Scope = rules.ScopeInstance",
		Test: "TestFleetByDefault",
	},
	{
		Name: "a limit with priority is held by as many instances as one without", File: "limiter/fleet/fit.go",
		Old: "float64(least*classes)", New: "float64(least)",
		Package: "internal/hotwords", Test: "TestFleetLimitWords",
	},
	{
		Name: "a joiner starts full", File: "internal/holding/holding.go",
		Old: "h.set(now, float64(max(0, h.part.Burst)), 0)", New: "h.set(now, missing, 0)",
		Test: "TestHolding",
	},
	{
		Name: "a part that grows is full", File: "internal/holding/holding.go",
		Old: "	return h.missing - missing\n}\n\n// Trim", New: "	return min(0, h.missing-missing)\n}\n\n// Trim",
		Test: "TestHolding",
	},
	{
		Name: "what is held beyond a part lasts", File: "internal/holding/holding.go",
		Old: "h.beyond * max(0, 1-float64(passed)/fill)", New: "h.beyond * max(1, 1-float64(passed)/fill)",
		Test: "TestHolding",
	},
	{
		Name: "a handover is not less with time", File: "internal/holding/holding.go",
		Old: "lost := h.Earned(age, false)", New: "lost := h.Earned(0, false)",
		Test: "TestHolding",
	},
	{
		Name: "keys that owed more than others are forgotten", File: "internal/holding/holding.go",
		Old: "credit < accepted {", New: "credit < 0 {",
		Test: "TestHoldingsTogether",
	},
	{
		Name: "unknown keys owe nothing", File: "limiter/opening.go",
		Old: "if n <= 0 {", New: "if n <= 1e9 {",
		Package: "internal/holding", Test: "TestHolding",
	},
	{
		Name: "a key earns at the rate of before until it is asked", File: "limiter/keys.go",
		Old: "if g.family == next.family {", New: "if false {",
		Package: "internal/holding", Test: "TestDroppedKeysOwe",
	},
	{
		Name: "an answer is applied twice", File: "limiter/fleet/settle.go",
		Old: "	s.added += answer.Granted + a.owed\n	s.held.Add(answer.Granted + a.owed)", New: "	s.added += answer.Granted + a.owed\n	s.held.Add(2*answer.Granted + a.owed)",
		Package: "limiter/redislimiter", Test: "TestFleetKeepsTheBound",
	},
	{
		Name: "a grant is not debited", File: "limiter/redislimiter/lua/lease.lua",
		Old: "  b.owed = b.owed + grant * cost\n", New: "",
		Package: "limiter/redislimiter", Test: "TestFleetKeepsTheBound",
	},
	{
		Name: "held permits are earned again", File: "limiter/redislimiter/lua/bucket.lua",
		Old: "if held > 0 and till > last then", New: "if false then",
		Package: "limiter/redislimiter", Test: "TestHeldPermitsAreNotEarned",
	},
	{
		Name: "a stock that has ended is refunded", File: "limiter/redislimiter/lua/lease.lua",
		Old: "if not live then left = math.min(0, held - more) end", New: "if not live then left = held - more end",
		Package: "limiter/redislimiter", Test: "TestSettlements",
	},
	{
		Name: "an older settlement is taken", File: "limiter/redislimiter/lua/lease.lua",
		Old: "if number <= before then return", New: "if false then return",
		Package: "limiter/redislimiter", Test: "TestSettlements",
	},
	{
		Name: "permits of a lost state are spent", File: "limiter/redislimiter/lua/lease.lua",
		Old: "  elseif incarnation ~= own then\n    hold, valid = 0, 0\n", New: "",
		Package: "limiter/redislimiter", Test: "TestSettlements",
	},
	{
		Name: "a lost state begins full", File: "limiter/redislimiter/lua/lease.lua",
		Old: "if incarnation ~= 0 then b.owed", New: "if false then b.owed",
		Package: "limiter/redislimiter", Test: "TestSettlements",
	},
	{
		Name: "a bucket that nobody could ask is full", File: "limiter/redislimiter/lua/lease.lua",
		Old: "elseif silent > 0 and t - settled > silent / 2 then", New: "elseif false then",
		Package: "limiter/redislimiter", Test: "TestSettlements",
	},
	{
		Name: "a stock lasts for ever", File: "limiter/fleet/stock.go",
		Old: "if held < max(n, 1) || s.fleet.clock.now() >= s.ends.Load() {", New: "if held < max(n, 1) {",
		Test: "TestStockEndsUnsettled",
	},
	{
		Name: "held permits pass to another quota", File: "limiter/fleet/stock.go",
		Old: "	s.dropHeld()\n	s.account.number++", New: "	s.account.number++",
		Test: "TestStockOfAnotherQuota",
	},
	{
		Name: "permits return to a stock that has ended", File: "limiter/fleet/stock.go",
		Old: "if version == s.version.Load() && s.fleet.clock.now() < s.ends.Load() {", New: "if true {",
		Test: "TestStockOfAnotherQuota",
	},
	{
		Name: "low priority takes the reserve", File: "limiter/redislimiter/lua/lease.lua",
		Old: "local free = math.max(0, (full - b.owed) / cost - keep)", New: "local free = math.max(0, (full - b.owed) / cost)",
		Package: "limiter/redislimiter", Test: "TestFleetPriority",
	},
	{
		Name: "the last request gets the next permit", File: "limiter/fleet/queue.go",
		Old: "s.line.PushBack(w)", New: "s.line.PushFront(w)",
		Test: "TestQueue",
	},
	{
		Name: "a request that leaves the line keeps its permit", File: "limiter/fleet/queue.go",
		Old: "		w.stock.Return(w.n, w.version)\n", New: "",
		Test: "TestQueue",
	},
	{
		Name: "a handover is claimed twice", File: "limiter/redislimiter/lua/members_beat.lua",
		Old: "  redis.call('HDEL', KEYS[3], all[oldest])\n", New: "",
		Package: "limiter/redislimiter", Test: "TestHandoverIsClaimedOnce",
	},
	{
		Name: "each instance begins a fleet", File: "limiter/redislimiter/lua/members_beat.lua",
		Old: "elseif new == 1 and count == 1 then", New: "elseif new == 1 then",
		Package: "limiter/redislimiter", Test: "TestFleetBegins",
	},
	{
		Name: "a fleet that Redis has lost begins", File: "limiter/redislimiter/lua/members_beat.lua",
		Old: "  began, last = 0, 0 --", New: "  --",
		Package: "limiter/redislimiter", Test: "TestLostFleetDoesNotBegin",
	},
	{
		Name: "a silent member keeps what others have earned", File: "limiter/redislimiter/members_share.go",
		Old: "rejoined && a.deaths != s.deaths && s.heard", New: "false",
		Package: "limiter/redislimiter", Test: "TestSilentMember",
	},
	{
		Name: "a number that is not known counts as one", File: "fleet.go",
		Old: "		h.guard.SetInstances(instances)\n", New: "",
		Test: "TestFleetStartsWithoutRedis",
	},
	{
		Name: "an instance begins with its whole part", File: "fleet.go",
		Old: "		_ = h.guard.HandOver() // until members say what this instance holds\n", New: "",
		Test: "TestFleetStartsTogether",
	},
}
