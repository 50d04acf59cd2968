package mutants

// Faults in requests that wait for a limit.

var waitFaults = []Fault{
	{
		Name: "nobody moves up for a waiter that gives up", File: "limiter/waitline.go",
		Old:  "		h := &l.held[len(l.held)-1]\n		out := *h\n",
		New:  "		h := &l.held[len(l.held)-1]\n		*h, l.held[0] = l.held[0], *h\n		out := *h\n",
		Test: "TestWaitersGiveUp",
	},
	{
		Name: "a reservation is cancelled though others wait", File: "limiter/waitline.go",
		Old: "	needed := l.wanted\n", New: "	needed := l.wanted - 1\n",
		Test: "TestWaitersGiveUp",
	},
	{
		Name: "a line of a remote key asks once", File: "limiter/waitask.go",
		Old: "	target := min(l.wanted, l.depth())\n", New: "	target := int64(0)\n",
		Test: "TestWaitersGiveUp",
	},
	{
		Name: "a line of a remote key reserves for all that wait", File: "limiter/waitask.go",
		Old: "	return max(n, l.first.N)\n", New: "	return max(n, l.wanted)\n",
		Test: "TestLineHoldsLittle",
	},
	{
		Name: "a line of a remote key keeps what many asked for at once", File: "limiter/waitline.go",
		Old: "l.reserved > depth+depth/2", New: "l.reserved > l.wanted",
		Test: "TestLineHoldsLittle",
	},
	{
		Name: "a turn stays where it was when those before it gave back", File: "limiter/waitask.go",
		Old: "return w.joinsFirst() && turn.Sub(now) > l.usualGap()", New: "return false",
		Test: "TestLineMovesUp",
	},
	{
		Name: "a newcomer overtakes those that could not reserve", File: "limiter/waitlines.go",
		Old: "!(l.short && c.Patient)", New: "true",
		Test: "TestNobodyOvertakesInAFullQueue",
	},
	{
		Name: "permits that are put together are used later than they are due", File: "limiter/waitline.go",
		Old: "h.due.Add(-time.Duration(h.n-n) * h.step)", New: "h.due",
		Test: "TestWaitsInAnyMix",
	},
	{
		Name: "those that want more permits take over places of fewer", File: "limiter/waitlines.go",
		Old: "		key.n = c.N\n", New: "		key.n = 0\n",
		Test: "TestWaitsInAnyMix",
	},
	{
		Name: "a waiter waits on when its turn has become too late", File: "limiter/waitline.go",
		Old: "		case w.isLate(turn) && held:\n", New: "		case false:\n",
		Package: "middleware", Test: "TestNobodyWaitsForLonger",
	},
	{
		Name: "a turn of a request that is refused is lost", File: "limiter/waitlines.go",
		Old: "			l.insertHeld(h)\n", New: "",
		Package: "middleware", Test: "TestTurnOfARefusedRequest",
	},
	{
		Name: "a request that gives up stays in line", File: "middleware/grants.go",
		Old: "	r.leaveLines()\n", New: "",
		Test: "TestClientsGiveUp|TestTurnsOfSeveralLimits",
	},
	{
		Name: "a request asks for an exact limit that others wait for", File: "middleware/exact.go",
		Old: "			r.joinLine(&r.pending.byBackend[i])\n", New: "			_ = i\n",
		Test: "TestRequestsJoinTheLine",
	},
}
