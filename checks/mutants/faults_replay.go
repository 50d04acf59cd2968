package mutants

// Faults in the replay of a log.

var replayFaults = []Fault{
	{
		Name: "standard input is not sorted", File: "internal/accesslog/reorder.go",
		Old: "max(b.due, b.newest-b.span)", New: "b.newest",
		Package: "internal/replay", Test: "TestOrderOfCompletion",
	},
	{
		Name: "what is out of order is not told", File: "internal/accesslog/reorder.go",
		Old: "if nanos < b.given {", New: "if false {",
		Test: "TestReorder",
	},
	{
		Name: "the buffer is not emptied at the end", File: "internal/accesslog/accesslog.go",
		Old: "order.finish()", New: "",
		Test: "TestReorder",
	},
	{
		Name: "a log that is followed waits for its next line", File: "internal/accesslog/accesslog.go",
		Old: "order.advance(began, time.Now())", New: "_ = began",
		Test: "TestReorderWhileNoLineComes",
	},
	{
		Name: "the reorder buffer has no bound", File: "internal/accesslog/reorder.go",
		Old: "if b.bytes <= b.maxBytes {", New: "if true {",
		Test: "TestReorderIsBounded",
	},
	{
		Name: "a trusted proxy's header is read of any peer", File: "middleware/clientaddr.go",
		Old: "ok && !isTrusted(c, ip) ||", New: "",
		Test: "TestClientAddr",
	},
	{
		Name: "a quote that a client opens hides a proxy's entry", File: "middleware/hops.go",
		Old: "comma = lastComma(h.unread)", New: `comma = strings.LastIndex(h.unread[:max(0, strings.IndexByte(h.unread, '"'))], ",")`,
		Test: "TestClientAddr",
	},
	{
		Name: "a key has two levels of the address", File: "rules/combinations.go",
		Old: "levels&(levels-1) != 0;", New: "levels>>31 != 0;",
		Test: "TestCombinationsHaveOneLevel",
	},
}
