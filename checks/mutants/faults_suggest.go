package mutants

// Faults in the rules that replay proposes.

var suggestFaults = []Fault{
	{
		Name: "a queue's end is taken for slowness at a low rate", File: "internal/capacity/capacity.go",
		Old: "g, max(rate, last)", New: "g, max(rate, 0*last)",
		Package: "internal/capacity", Test: "TestSeen",
	},
	{
		Name: "a slow window counts as capacity", File: "internal/capacity/capacity.go",
		Old: "case g.each() <= SlowFactor*s.Usual:", New: "case true:",
		Package: "internal/capacity", Test: "TestSeen",
	},
	{
		Name: "a route's capacity stands for ever", File: "aggregator/capacity.go",
		Old: "r.before, r.newest = r.newest, capacity.Route{}", New: "_ = r",
		Package: "aggregator", Test: "TestCapacityForgets",
	},
	{
		Name: "a value that means none is limited", File: "internal/suggest/values.go",
		Old: "frequentNone := isNone(text) &&", New: "frequentNone := false &&",
		Test: "TestUsualValuesAreExcepted",
	},
	{
		Name: "a burst is taken for usual traffic", File: "internal/suggest/values.go",
		Old: "judged > 0 && 2*with >= judged", New: "with > 0",
		Test: "TestUsualValuesAreExcepted",
	},
	{
		Name: "an exception stands for any text", File: "internal/suggest/values.go",
		Old: ` && !strings.Contains(u.Value, "*")`, New: "",
		Test: "TestUsualValueThatNoRuleNames",
	},
	{
		Name: "a parameter that nothing heats is proposed", File: "internal/suggest/search.go",
		Old: "p.Hot == 0 {", New: "false {",
		Test: "TestParameterThatNothingHeats",
	},
	{
		Name: "a limit in shadow mode is not counted", File: "internal/replay/replay.go",
		Old: "!d.Allowed || shadowed > r.shadowed", New: "!d.Allowed",
		Package: "internal/suggest", Test: "TestUsualValuesAreExcepted",
	},
	{
		Name: "hot values count as refused", File: "internal/suggest/measure.go",
		Old: "if k.Limited > 0 {", New: "if k.Limited >= 0 {",
		Package: "internal/suggest", Test: "TestRefusedAgreesWithPlainBuckets",
	},
	{
		Name: "what is refused is counted with a burst", File: "internal/suggest/measure.go",
		Old: "    limit: \" + p.Limit", New: "    limit: {burst: 1000, rate: \" + p.Limit + \"}\"",
		Package: "internal/suggest", Test: "TestRefusedAgreesWithPlainBuckets",
	},
	{
		Name: "a jump's limit refuses what usual values always have", File: "internal/suggest/search.go",
		Old: "max(n, p.steady)", New: "n",
		Test: "TestUsualValueThatNoRuleNames",
	},
	{
		Name: "usual values that no rule can name are hot at all times", File: "internal/suggest/judge.go",
		Old: "out.Jump, out.steady = jumpFactor,", New: "out.Jump, out.steady = \"\",",
		Test: "TestUsualValueThatNoRuleNames",
	},
	{
		Name: "an empty value looks private", File: "internal/suggest/values.go",
		Old: "return `\"\"`", New: "return \"\"",
		Test: "TestEmptyValueIsShown",
	},
}
