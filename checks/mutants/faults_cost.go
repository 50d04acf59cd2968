package mutants

// Faults in charging requests for their time while they run.

var costFaults = []Fault{
	{
		Name: "the end of a request charges its time a second time", File: "middleware/cost.go",
		Old: "n := t.charged - before", New: "n := t.charged - 0*before",
		Test: "TestTimeIsChargedOnce",
	},
	{
		Name: "a used ticket keeps the time of its last request", File: "middleware/cost.go",
		Old: "t.started, t.metered, t.metedTo, t.waited, t.charged = false, false, 0, 0, 0", New: "t.started, t.metered, t.metedTo, t.waited = false, false, 0, 0",
		Test: "TestTimeIsChargedOnce",
	},
	{
		Name: "the end of a request does not wait for a charge in progress", File: "middleware/running.go",
		Old: "	if s.charging == t {", New: "	if s.charging == t && false {",
		Test: "TestEndWaitsForCharge",
	},
	{
		Name: "the rest of the time is rounded down", File: "middleware/running.go",
		Old: "return t.guard.running.remove(t) - t.start }", New: "return (t.guard.running.remove(t) - t.start).Truncate(time.Millisecond) }",
		Test: "TestTimeIsChargedOnce",
	},
	{
		Name: "a request that has ended is charged on", File: "middleware/cost.go",
		Old: "		cost.Time = t.stop()\n", New: "		cost.Time = t.elapsed()\n",
		Test: "TestTimeIsChargedOnce",
	},
	{
		Name: "the timer ends although requests run", File: "middleware/running.go",
		Old: "		if r.shards[i].size() > 0 {", New: "		if i < 0 {",
		Test: "TestRunningRequestsAreCharged|TestTimerIsSetAgain",
	},
	{
		Name: "a request that begins while others are charged sets no timer", File: "middleware/running.go",
		Old: "	r.armed.Store(false)\n", New: "",
		Test: "TestTimerIsSetAgain|TestRunningRequestsAreCharged",
	},
	{
		Name: "a removed ticket leaves the last one in its old place", File: "middleware/running.go",
		Old: "s.tickets[t.place], last.place = last, t.place", New: "s.tickets[t.place] = last",
		Test: "TestTimeIsChargedOnce|TestTimerIsSetAgain",
	},
	{
		Name: "a panic while a request is charged ends the program", File: "middleware/running.go",
		Old: "	defer t.guard.countPanic()\n", New: "",
		Test: "TestChargePanics",
	},
	{
		Name: "the time of a call is not charged while it runs", File: "middleware/rpc/call.go",
		Old: "			ticket.Start()\n", New: "",
		Test: "TestTime",
	},
	{
		Name: "the time of a handler is not charged while it runs", File: "middleware/meter.go",
		Old: "	t.Start()\n", New: "",
		Package: "middleware/middlewaretest", Test: "TestServeMux",
	},
	{
		Name: "no request is told to have begun", File: "middleware/usage.go",
		Old: "		begun = 1\n", New: "		begun = 0\n",
		Test: "TestUsageIsWhole",
	},
	{
		Name: "a request with two keys is twice in its route's usage", File: "middleware/usage.go",
		Old: "	if !again {\n", New: "	if true || again {\n",
		Test: "TestUsageIsWhole",
	},
	{
		Name: "the wait for a client is usage", File: "middleware/usage.go",
		Old: "-(waited-t.waited))", New: ")",
		Test: "TestUsageWithoutClients",
	},
	{
		Name: "refused requests of held keys are told again and again", File: "middleware/usage.go",
		Old: "		state.refusedTold = refused\n", New: "",
		Test: "TestUsageOfRefused",
	},
	{
		Name: "an aggregator in standby holds keys", File: "aggregator/costly.go",
		Old: "		if standby {\n", New: "		if standby && false {\n",
		Test: "TestStandbyHoldsNothing",
	},
	{
		Name: "rules with one back end are judged apart", File: "rules/rule.go",
		Old: "namespace + \"..\" + r.Pool()", New: "namespace + \"..\" + r.ID",
		Test: "TestPoolHasOneHome",
	},
	{
		Name: "others that are slow again and again are not slow", File: "aggregator/internal/blame/present.go",
		Old: " || all >= slowOften", New: "",
		Test: "TestSlowAgainAndAgain",
	},
	{
		Name: "a trial ends before a queue has drained", File: "aggregator/internal/blame/trial.go",
		Old: " && p.drains() {", New: " && false {",
		Test: "TestTrialLastsWhileAQueueDrains",
	},
	{
		Name: "a key that was dear once is dear", File: "aggregator/internal/blame/subject.go",
		Old: "s.dearSteps >= 1.8 && ", New: "s.dearSteps > 0.1 && ",
		Test: "TestDearAgainAndAgain",
	},
	{
		Name: "a gain is proof enough", File: "aggregator/internal/blame/hold.go",
		Old: "case h.cheap >= cheapKept, h.cheap > 0 && h.about.Stage == rules.HoldTrial:", New: "case false:",
		Test: "TestGainIsNoProof",
	},
	{
		Name: "a pause is proof", File: "aggregator/internal/blame/hold.go",
		Old: "max(float64(need)*dear, leastHang)", New: "float64(need)*dear",
		Test: "TestPauseIsNoProof",
	},
	{
		Name: "the slowest of the others are not watched", File: "aggregator/internal/blame/judge.go",
		Old: " && j.tail.disturbed() && ", New: " && false && ",
		Test: "TestDearKeyIsTriedWhenTheSlowestSuffer",
	},
	{
		Name: "keys that slow none of the others down are tried", File: "aggregator/internal/blame/judge.go",
		Old: " && j.tail.disturbed() && ", New: " && ",
		Test: "TestDearKeyThatSlowsNoneDownIsLeftAlone",
	},
	{
		Name: "an early trial delays one in an overload", File: "aggregator/internal/blame/hold.go",
		Old: "reason == whyNoGain && !j.trial.early || ", New: "reason == whyNoGain || ",
		Test: "TestEarlyTrialDoesNotDelayOneInAnOverload",
	},
	{
		Name: "permits rise although the slowest suffer", File: "aggregator/internal/blame/trial.go",
		Old: "hurts := j.present.hurt() || j.tail.disturbed()", New: "hurts := j.present.hurt()",
		Test: "TestPermitsFallWhenTheSlowestSuffer",
	},
	{
		Name: "a key whose requests stopped is held the longer, the longer ago that is", File: "aggregator/internal/blame/hold.go",
		Old: "h.active.Sub(h.since).Seconds())\n		switch", New: "now.Sub(h.since).Seconds())\n		switch",
		Test: "TestStoppedKeyIsReleasedSoon",
	},
	{
		Name: "nothing is learned of the slowest while a key is held", File: "aggregator/internal/blame/usual.go",
		Old: "usual && !u.served, u.fresh", New: "usual && len(j.held) == 0, u.fresh",
		Test: "TestSlowestAreLearnedWhileAKeyIsHeld",
	},
	{
		Name: "a request with a permit is canceled", File: "middleware/cancel.go",
		Old: "if o.permit || !o.cancels() {", New: "if !o.cancels() {",
		Test: "TestHeldRequestsAreCanceled",
	},
	{
		Name: "a context lasts longer than its request", File: "middleware/cost.go",
		Old: "		t.cancel(nil)\n", New: "",
		Test: "TestTicketContext",
	},
}
