package mutants

// reloadFaults are faults in rules that change while running.
var reloadFaults = []Fault{
	{
		Name: "a setting that decides is not part of the version of the rules", File: "config/version.go",
		Old: "Instances: f.Instances, ", New: "",
		Test: "TestVersionIsOfWhatDecides",
	},
	{
		Name: "the order of the trusted networks makes another version", File: "config/version.go",
		Old: "slices.SortedFunc(slices.Values(d.Rules.Client.Trusted), netip.Prefix.Compare)", New: "slices.SortedFunc(slices.Values(d.Rules.Client.Trusted), func(a, b netip.Prefix) int { return 0 })",
		Test: "TestVersionIsOfWhatIsMeant",
	},
	{
		Name: "a default that is written out makes another version", File: "config/version.go",
		Old: "value.IsZero() || value.Interface() == sameAsZero[structType.Name()+\".\"+field]", New: "value.IsZero()",
		Test: "TestVersionIsOfWhatIsMeant",
	},
	{
		Name: "a bad file is good once it was unreadable", File: "internal/daemon/rulesfile.go",
		Old: "	r.unreadable = \"\"\n	if err != nil {", New: "	r.unreadable, r.stats.Problem = \"\", \"\"\n	if err != nil {",
		Test: "TestBadFileThatIsUnreadableStaysBad",
	},
	{
		Name: "keys of a rule that has just come are sent by the old rules", File: "collector/reload.go",
		Old: "(k.profile == unknown || k.profile == gone) && c.next.Load() != nil", New: "false",
		Test: "TestReloadWhileFlushing",
	},
	{
		Name: "the sums of the rules begin anew with each version", File: "collector/rulecounts.go",
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
		Package: ".", Test: "TestThresholdsChange",
	},
	{
		Name: "an instance never leaves the fleet", File: "fleet.go",
		Old: "		f.leave()\n", New: "",
		Package: ".", Test: "TestLastSharedLimit",
	},
	{
		Name: "rule sums begin anew with each version", File: "collector/statsdsink/rules.go",
		Old: "place, ok := s.places[prefix]", New: "place, ok := 0, false",
		Test: "TestSetRules",
	},
	{
		Name: "a new window claims that nothing was before", File: "aggregator/reload.go",
		Old: "		v.BeginAfter(pane)\n", New: "",
		Test: "TestClaimsHoldThroughReloads",
	},
	{
		Name: "a rule that counts in another unit goes on with its counts", File: "internal/decode/numbered.go",
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
		Name: "a window that is made smaller ends its look for a key to evict at the first pinned ones", File: "aggregator/internal/window/resize.go",
		Old: "	for range w.arena.made/looks + 2 {", New: "	for range 1 {",
		Test: "TestPinnedKeysAreTheLastToGo",
	},
	{
		Name: "what is held back when rules change is in the totals twice", File: "internal/decode/reports.go",
		Old: "	case m.Start <= a.since, agree &&", New: "	case agree &&",
		Test: "TestGroupsThroughReload",
	},
}
