package mutants

// What replay proposes.

var suggestFaults = []Fault{
	{
		Name: "a value that means none is limited", File: "internal/suggest/values.go",
		Old: "none := isNone(text) &&", New: "none := false &&",
		Test: "TestUsualValuesAreExcepted",
	},
	{
		Name: "a burst is taken for usual traffic", File: "internal/suggest/values.go",
		Old: "judged > 0 && 2*with >= judged", New: "with > 0",
		Test: "TestUsualValuesAreExcepted",
	},
	{
		Name: "an exception stands for any text", File: "internal/suggest/values.go",
		Old: `strings.Contains(text, "*") || `, New: "",
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
		Old: "    limit: \" + p.Threshold", New: "    limit: {burst: 1000, rate: \" + p.Threshold + \"}\"",
		Package: "internal/suggest", Test: "TestRefusedAgreesWithPlainBuckets",
	},
}
