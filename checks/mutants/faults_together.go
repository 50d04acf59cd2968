package mutants

// Faults in limits that are asked together, and in the permits that are returned.

var togetherFaults = []Fault{
	{
		Name: "one limit is taken although another denies, in memory", File: "limiter/together.go",
		Old: "if !op.together() || denied && r.Allowed ||", New: "if !op.together() ||",
		Test: "TestMemoryConforms",
	},
	{
		Name: "one limit is taken although another denies, by the short script", File: "limiter/redislimiter/lua/plain.lua",
		Old: "    if denied then\n", New: "    if false then\n",
		Package: "limiter/redislimiter",
		Test:    "TestTheRefusedStarveNobody|TestPlainTakesAreAsOthers",
	},
	{
		Name: "one limit is taken although another denies, by the script", File: "limiter/redislimiter/lua/run.lua",
		Old: "  elseif not denied then\n", New: "  else\n",
		Package: "limiter/redislimiter",
		Test:    "TestTheRefusedStarveNobody|TestPlainTakesAreAsOthers",
	},
	{
		Name: "the penalty of a limit that denies is lost where limits are asked together", File: "limiter/redislimiter/lua/run.lua",
		Old: "if retry > 0 and penalty > 0 and kind ~= PEEK then", New: "if retry > 0 and penalty > 0 and kind ~= PEEK and not on.trial then",
		Package: "limiter/redislimiter",
		Test:    "TestDenialsTogetherHaveEffects",
	},
	{
		Name: "what several parts of a request take of one key is kept though it is refused", File: "limiter/redislimiter/lua/run.lua",
		Old: "if n > 0 then got = try(k, true, n, mark) end", New: "",
		Package: "limiter/redislimiter",
		Test:    "TestTogetherOfOneKey",
	},
	{
		Name: "limits beside one that is known to deny are asked", File: "limiter/cached.go",
		Old: "denied = denied || ops[i].together()", New: "denied = false",
		Test: "TestCachedAsksNothingBesideAKnownDenial",
	},
	{
		Name: "a limit in shadow mode refuses those that are asked together with it", File: "middleware/limit.go",
		Old: "ask.Together = cl.spec.limit.Mode != rules.ModeShadow", New: "ask.Together = true",
		Test: "TestExactTogether",
	},
	{
		Name: "a return shrinks with each later one", File: "limiter/redislimiter/lua/bucket.lua",
		Old: "left = math.max(left, n * b.cost - (on.t - since) * b.earn) end", New: "left = left end",
		Package: "limiter/redislimiter",
		Test:    "TestReturnsDoNotLeak",
	},
	{
		Name: "a return gives back what was earned at another rate", File: "limiter/redislimiter/lua/bucket.lua",
		Old: "since > 0 and b.turn <= since and", New: "since > 0 and",
		Package: "limiter/redislimiter",
		Test:    "TestReturnAfterAnotherRate",
	},
	{
		Name: "what was taken last and returned stays in the line", File: "limiter/redislimiter/lua/bucket.lua",
		Old: "b.line = b.line - math.floor(back / b.cost)", New: "b.line = b.line",
		Package: "limiter/redislimiter", Test: "TestReturnsInReverseOrder",
	},
	{
		Name: "tokens are not given back", File: "middleware/request.go",
		Old: "r.giveBack()", New: "",
		Test: "TestEachGivesBack",
	},
}
