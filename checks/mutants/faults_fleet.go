package mutants

// Faults in an instance's part of a limit that the fleet shares.

var fleetFaults = []Fault{
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
