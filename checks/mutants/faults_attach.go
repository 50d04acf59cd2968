package mutants

var attachFaults = []Fault{
	{
		Name: "a file is put in force half written", File: "internal/filewatch/filewatch.go",
		Old: "case w.differs && bytes.Equal(data, w.previous):", New: "case w.previous == nil || w.differs:",
		Test: "TestHalfWritten",
	},
	{
		Name: "a single failed read is reported", File: "internal/filewatch/filewatch.go",
		Old: "w.failures == 2 {", New: "w.failures == 1 {",
		Test: "TestHalfWritten",
	},
	{
		Name: "what OnChange received is overwritten", File: "internal/filewatch/filewatch.go",
		Old: "bytes.Clone(data), true", New: "data, true",
		Test: "TestDataIsKept|TestHalfWritten",
	},
	{
		Name: "a file that Reload has read is put in force again", File: "reload.go",
		Old: "if bytes.Equal(data, h.rules.tried) {", New: "if bytes.Equal(data, nil) {",
		Test: "TestReload",
	},
	{
		Name: "a bad file is not told", File: "reload.go",
		Old: "if err != nil && !errors.Is(err, ErrClosed) {", New: "if false {",
		Test: "TestFileChanges",
	},
	{
		Name: "Close holds permits up no more", File: "hotparam.go",
		Old: "	h.awaitPermits(ctx)\n", New: "",
		Test: "TestCloseAwaitsPermits",
	},
	{
		Name: "the first shared limit has no instances counted", File: "reload.go",
		Old: "	h.followFleet(file.Rules)\n", New: "",
		Test: "TestFirstSharedLimit",
	},
	{
		Name: "the program's Redis client is closed", File: "hotparam.go",
		Old: "		if o.redis == nil {\n			h.err", New: "		if true {\n			h.err",
		Test: "TestWithRedis",
	},
	{
		Name: "an instance that is not heard is not told", File: "mismatch.go",
		Old: "publishes && !lists && m.name != \"\"", New: "false",
		Test: "TestUnheardAndUnknown",
	},
	{
		Name: "a request is not counted for the rule that decided on it", File: "middleware/rulestats.go",
		Old: "r.countDecision(&v.decider.decisions.of[v.decision.Reason])", New: "_ = v.denied",
		Package: ".", Test: "TestMetrics",
	},
	{
		Name: "the counters of a rule that is back begin anew", File: "middleware/rulestats.go",
		Old: "g.decisions[rule] = c", New: "_ = rule",
		Package: ".", Test: "TestMetricsAfterReload",
	},
	{
		Name: "a file that only limits follows Redis", File: "hotparam.go",
		Old: "	if h.counts != nil {\n		h.run(h.counts.Run)\n", New: "	if h.counts != nil {\n		h.run(h.counts.Run)\n	}\n	if true {\n",
		Test: "TestSourceNone",
	},
	{
		Name: "a rule with hot is accepted where nothing is counted", File: "middleware/reload.go",
		Old: "g.counts == nil && len(r.Hot) > 0", New: "false",
		Test: "TestNewRefuses|TestGuardWithoutCollector",
	},
	{
		Name: "a file whose rules have hot may count nothing", File: "config/agree.go",
		Old: "f.Aggregator.Source == SourceNone && len(f.Rules.Rules[i].Hot) > 0", New: "false",
		Test: "TestBadFiles",
	},
	{
		Name: "requests without the parameter escape a limit in one line", File: "middleware/limitonly.go",
		Old: "o.limitsBare = true", New: "o.limitsBare = false",
		Test: "TestLimit",
	},
	{
		Name: "held keys never end", File: "hotkeys/hold.go",
		Old: "holdEnd = e.heldSince.Add(s.span)", New: "holdEnd = e.heldSince.Add(1000 * time.Hour)",
		Test: "TestHold|TestHoldAgainstAccount",
	},
	{
		Name: "a key is held that the returned publisher does not have", File: "hotkeys/hold.go",
		Old: "if s.alive && s.grace.Before(holdEnd) {", New: "if false {",
		Test: "TestReturnEndsHold|TestHoldAgainstAccount",
	},
	{
		Name: "the release of a held key is ignored", File: "hotkeys/hold.go",
		Old: "e != nil && events[i].Type == releaseEvent", New: "e != nil && events[i].Type == \"\"",
		Test: "TestHoldIsReleased",
	},
	{
		Name: "a held key is dropped before its publisher has renewed it", File: "hotkeys/state.go",
		Old: "if old != nil && !old.heldSince.IsZero() && ttl <= 0 {", New: "if false {",
		Test: "TestRedisReturnsToHeldKeys|TestHoldAgainstAccount",
	},
	{
		Name: "a changed file does not change the hold", File: "reload.go",
		Old: "	h.watcher.SetHold(file.Aggregator.HoldDuringOutage)\n", New: "",
		Test: "TestHoldWhenAway",
	},
}
