package mutants

// takeoverFaults are in what becomes of hot keys and windows where Graphite and Kafka keep the
// counts, and where a clock is set.
var takeoverFaults = []Fault{
	{
		Name: "the Graphite source adopts no keys that are published already", File: "aggregator/graphitesource/source.go",
		Old: "s.job.inherit(s.takeInherited())", New: "s.takeInherited()",
		Test: "TestInheritsAcrossRestarts",
	},
	{
		Name: "the Graphite source does not ask by name for keys that it inherits", File: "aggregator/graphitesource/reload.go",
		Old: "	j.nameHot()\n}", New: "}",
		Test: "TestInheritsAcrossRestarts",
	},
	{
		Name: "a hot key is in no answer once its last high point is passed", File: "aggregator/graphitesource/count.go",
		Old: "i := min(max(0, from-s.first), int64(len(s.value)))", New: "i := min(0, from)",
		Test: "TestInheritsAcrossRestarts",
	},
	{
		Name: "the Graphite source forgets what is hot when Graphite's clock is set back", File: "aggregator/graphitesource/job.go",
		Old: "j.adopted = append(j.detector.Listed(), j.adopted...)", New: "",
		Test: "TestClocksDropNoKey",
	},
	{
		Name: "a key stays hot until Graphite's clock is where it was before it was set back", File: "aggregator/graphitesource/count.go",
		Old: "h.Since = j.when(newest)", New: "_ = h",
		Test: "TestClocksDropNoKey",
	},
	{
		Name: "Graphite is not asked for less when its clock is ahead of what is known", File: "aggregator/graphitesource/job.go",
		Old: "if !j.tooMuch {", New: "if !j.tooMuch || q.points <= 2*latest.points {",
		Test: "TestClocksDropNoKey",
	},
}
