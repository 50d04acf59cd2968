package mutants

var reloadFaults = []Fault{
	{
		Name: "keys of a rule that has just come are sent by the old rules", File: "collector/reload.go",
		Old: "(k.profile == unknown || k.profile == gone) && c.next.Load() != nil", New: "false",
		Test: "TestReloadWhileFlushing",
	},
	{
		Name: "the sums of the rules begin anew with each version", File: "collector/counted.go",
		Old: "			r.before = last.n.Load()\n", New: "",
		Test: "TestReloadKeepsSums",
	},
	{
		Name: "a key that is hot here cools with each new window", File: "collector/local.go",
		Old: " && c.now >= r.complete", New: "",
		Test: "TestReloadKeepsLocal",
	},
	{
		Name: "what a hot key took is forgiven when its rule loses hot", File: "middleware/limit.go",
		Old: "r.askKeyed(cl) && cl.rule.heated != nil {", New: "r.askKeyed(cl) && false {",
		Test: "TestReloadAddsAndRemovesHot",
	},
	{
		Name: "what a key took is forgiven when its rule gets hot", File: "middleware/limit.go",
		Old: "r.askBucket(cl, b) && cl.spec.keyed != nil {", New: "r.askBucket(cl, b) && false {",
		Test: "TestReloadAddsAndRemovesHot|TestReloadForgivesNothing",
	},
	{
		Name: "a rule that comes back has forgotten what was taken", File: "middleware/former.go",
		Old: "			f.specs[s.name] = s\n", New: "",
		Test: "TestReloadForgivesNothing",
	},
	{
		Name: "an exception has permits of its own", File: "middleware/limitspec.go",
		Old: "	s.kept.permits = b.permits[r.ID]\n", New: "",
		Test: "TestReloadForgivesNothing",
	},
	{
		Name: "the collector goes on with the old rules", File: "middleware/reload.go",
		Old: "	g.counts.Reload(set.Rules)\n", New: "",
		Package: "attach", Test: "TestThresholdsChange",
	},
	{
		Name: "an instance never leaves the fleet", File: "attach/fleet.go",
		Old: "		f.leave()\n", New: "",
		Package: "attach", Test: "TestLastSharedLimit",
	},
	{
		Name: "rule sums begin anew with each version", File: "collector/statsdsink/rules.go",
		Old: "place, ok := s.places[prefix]", New: "place, ok := 0, false",
		Test: "TestSetRules",
	},
}
