package mutants

// reloadFaults are in what rules become that change while running.
var reloadFaults = []Fault{
	{
		Name: "a new window claims that nothing was before", File: "aggregator/reload.go",
		Old: "		v.Begin(pane)\n", New: "",
		Test: "TestClaimsHoldThroughReloads",
	},
	{
		Name: "a rule that counts in another unit goes on with its counts", File: "aggregator/decode/numbered.go",
		Old: "was.Count == rule.Count && ", New: "",
		Package: "aggregator", Test: "TestClaimsHoldThroughReloads",
	},
	{
		Name: "a hot key cools when its threshold changes", File: "aggregator/keephot.go",
		Old: "		w.holdByAll(now)\n", New: "",
		Test: "TestClaimsHoldThroughReloads",
	},
	{
		Name: "counts of former rules are those of the new one", File: "aggregator/reload.go",
		Old: "		r.from = x.d.settled(p.rule, x.n.InOrder().Namespace, x.now)\n", New: "",
		Test: "TestClaimsHoldThroughReloads",
	},
	{
		Name: "cells of another size hide a part of the others", File: "aggregator/internal/window/resize.go",
		Old: "j := first; j <= last; j++ {\n				sum +=", New: "j := first; j <= first; j++ {\n				sum +=",
		Test: "TestResizeKeepsCounts",
	},
	{
		Name: "what is held back when rules change is in the totals twice", File: "aggregator/decode/heldback.go",
		Old: "	case m.Start <= a.since, agree &&", New: "	case agree &&",
		Test: "TestGroupsThroughReload",
	},
}
