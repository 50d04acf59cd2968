package mutants

// historyFaults are faults in the history.
var historyFaults = []Fault{
	{
		Name: "the history is written while the server is nearly full", File: "internal/history/office.go",
		Old: "r.fraction() >= limit", New: "r.fraction() >= limit+1",
		Test: "TestFullServer|TestHistoryFillsNoServer",
	},
	{
		Name: "the history goes on as soon as the server is below the bound", File: "internal/history/office.go",
		Old: "limit = resumeAt", New: "limit = stopAt",
		Test: "TestFullServer",
	},
	{
		Name: "an open chunk brings a forgotten key back", File: "internal/history/compact.go",
		Old: "		c.forget(w.forget.names) // it", New: "		// it",
		Test: "TestWriterCleansWhatItReads",
	},
	{
		Name: "a writer that does not know the forgotten keys writes", File: "internal/history/write.lua",
		Old: "~= ARGV[3] then", New: "== 'none' then",
		Test: "TestForgottenKeyIsNotWrittenBack",
	},
	{
		Name: "a writer that was replaced writes", File: "internal/history/write.lua",
		Old: "~= tonumber(ARGV[2]) then", New: "< 0 then",
		Test: "TestOfficeChangesHands",
	},
	{
		Name: "a call that failed takes its minute with it", File: "internal/history/compact.go",
		Old: "	w.before = b.before\n", New: "",
		Test: "TestOutage|TestOfficeChangesHands|TestForgottenKeyIsNotWrittenBack",
	},
	{
		Name: "a key that is not in all columns has no higher bound", File: "internal/history/chunk.go",
		Old: "sum.High = plus(sum.High, missing)", New: "_ = missing",
		Test: "TestHistoryIsTheTruthAtEachLevel",
	},
	{
		Name: "finer chunks add to what coarser ones cover", File: "internal/history/collect.go",
		Old: "at+k.step > c.from && !c.covers(at, at+k.step)", New: "at+k.step > c.from",
		Test: "TestHistoryIsTheTruthAtEachLevel",
	},
	{
		Name: "what the rest of a pane has is not bounded for a key without a text", File: "aggregator/internal/window/listed.go",
		Old: "return from - 1 + hidden + lacks", New: "return hidden + lacks",
		Package: "aggregator", Test: "TestTopsBoundTheCountsOfEachSecond",
	},
}
