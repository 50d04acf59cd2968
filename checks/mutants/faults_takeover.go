package mutants

// takeoverFaults are faults in hot keys and windows after a takeover where Graphite and Kafka
// keep the counts, and after a clock is set.
var takeoverFaults = []Fault{
	{
		Name: "the Graphite source adopts no keys that are published already", File: "internal/graphitesource/source.go",
		Old: "s.job.inheritHot(s.takeInherited())", New: "s.takeInherited()",
		Test: "TestInheritsAcrossRestarts",
	},
	{
		Name: "the Graphite source does not ask by name for keys that it inherits", File: "internal/graphitesource/reload.go",
		Old: "	j.nameHot()\n}", New: "}",
		Test: "TestInheritsAcrossRestarts",
	},
	{
		Name: "a hot key is in no answer once its last high point is passed", File: "internal/graphitesource/count.go",
		Old: "i := min(max(0, from-s.first), int64(len(s.value)))", New: "i := min(0, from)",
		Test: "TestInheritsAcrossRestarts",
	},
	{
		Name: "keys that were hot while nobody owned their partition are not published", File: "internal/kafkasource/adopt.go",
		Old: "	w.detector.Adopt(missed, w.now)\n", New: "",
		Test: "TestBurstsInHandOversAreFound",
	},
	{
		Name: "keys that the previous owner judged become hot again", File: "internal/kafkasource/adopt.go",
		Old: "if h.Since.After(since) && !known[key] {", New: "if !since.IsZero() && !known[key] {",
		Test: "TestBurstsInHandOversAreFound|TestTakeOverTellsNothingOld",
	},
	{
		Name: "an owner does not say up to when it has judged its partition", File: "internal/kafkasource/work.go",
		Old: "w.gate.to.Judged(complete)", New: "",
		Test: "TestBurstsInHandOversAreFound",
	},
	{
		Name: "a publisher does not write up to when its owner's counts are judged", File: "hotkeys/lua/common.lua",
		Old: "if judged ~= '' then", New: "if false then",
		Package: "hotkeys",
		Test:    "TestAdopt",
	},
	{
		Name: "what an instance sent before it was heard of counts as nothing", File: "internal/decode/senders.go",
		Old: "s.missed = l.recordMissing(s.unheard, now)", New: "s.unheard = 0", Package: "aggregator",
		Test: "TestInstancesThatAreHeardInMidStream",
	},
	{
		Name: "what a young instance sent before it was heard of counts as nothing", File: "internal/decode/senders.go",
		Old: "if !isYoung(m) || !s.resumed", New: "if m.Seq > 0 || !s.resumed",
		Test: "TestAccounts",
	},
	{
		Name: "a silent instance is forgotten", File: "internal/decode/senders.go",
		Old: "			s.keepSilent(known)\n", New: "", Package: "internal/replay",
		Test: "TestRandomLogs",
	},
	{
		Name: "an instance that says that it has sent nothing makes bounds unknown", File: "internal/decode/senders.go",
		Old: "return m.Seq <= 1 || m.Sums.Stated", New: "return m.Seq <= 1 || !m.Sums.Stated", Package: "aggregator",
		Test: "TestInstancesThatAreHeardInMidStream",
	},
	{
		Name: "packets that the first one heard has overtaken stay missing", File: "internal/decode/senders.go",
		Old: "l.subtractFound(s.missed, 1)", New: "_ = l",
		Test: "TestSendersTakeEachPacketOnceAndCountTheMissing",
	},
	{
		Name: "hot keys cool when the clock is set forward", File: "aggregator/advance.go",
		Old: "4*step >= time.Duration(v.Panes)*v.Pane", New: "false",
		Test: "TestClocksThatAreSetDropNoHotKey",
	},
	{
		Name: "hot keys cool when the clock is set back", File: "aggregator/advance.go",
		Old: "if !w.rehold(v, now) {", New: "if true {",
		Test: "TestClocksThatAreSetDropNoHotKey",
	},
	{
		Name: "hot keys are held until the clock is where it was before it was set back", File: "aggregator/advance.go",
		Old: "hold: earlier(m.hold, now.Add(t.Hold))})", New: "hold: m.hold})",
		Test: "TestClocksThatAreSetDropNoHotKey",
	},
	{
		Name: "windows are whole at once when the clock is set back", File: "aggregator/advance.go",
		Old: "	v.beginWindows(nil, now, now.Add(-d.cfg.Lag))\n	var cool", New: "	var cool",
		Test: "TestClocksThatAreSetDropNoHotKey",
	},
	{
		Name: "losses are not reported until the clock is where it was before it was set back", File: "internal/decode/losses.go",
		Old: "*l = losses{} //", New: "_ = l //",
		Test: "TestLossesAfterTheClockWasSetBack",
	},
	{
		Name: "the Graphite source forgets what is hot when Graphite's clock is set back", File: "internal/graphitesource/job.go",
		Old: "j.adopted = append(j.detector.Listed(), j.adopted...)", New: "",
		Test: "TestClocksDropNoKey",
	},
	{
		Name: "a key stays hot until Graphite's clock is where it was before it was set back", File: "internal/graphitesource/count.go",
		Old: "h.Since = j.when(newest)", New: "_ = h",
		Test: "TestClocksDropNoKey",
	},
	{
		Name: "Graphite is not asked for less when its clock is ahead of what is known", File: "internal/graphitesource/job.go",
		Old: "if !j.tooMuch {", New: "if !j.tooMuch || q.points <= 2*latest.points {",
		Test: "TestClocksDropNoKey",
	},
	{
		Name: "a Kafka session that only returns records is kept", File: "collector/kafkasink/run.go",
		Old: "s.queue.isStalled(before) || ses.moved.Before(before)", New: "s.queue.isStalled(before)",
		Test: "TestUselessSessionIsReplaced",
	},
}
