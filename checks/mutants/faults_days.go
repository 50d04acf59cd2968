package mutants

// Faults in jumps over days.

var dayFaults = []Fault{
	{
		Name: "a day counts by its own hour alone", File: "internal/baseline/reference.go",
		Old: "low, high = max(low, l), max(high, h)", New: "_, _ = l, h",
		Package: "aggregator", Test: "TestJumpOverDaysIsExact",
	},
	{
		Name: "the highest of the days is the baseline", File: "internal/baseline/reference.go",
		Old: "return numbers[(len(numbers)-1)/2]", New: "return numbers[len(numbers)-1]",
		Test: "TestAttacksOfThreeDaysChangeNoBaseline",
	},
	{
		Name: "a count is rounded down", File: "internal/baseline/hour.go",
		Old: "(n + 1<<shift - 1) >> shift", New: "n >> shift",
		Test: "TestQuantityIsNeverBelow",
	},
	{
		Name: "keys without room leave no floor", File: "internal/baseline/hour.go",
		Old: "r.Floor = max(r.Floor, keys[room].N+1)", New: "",
		Test: "TestAnHourIsNeverBelowTheTruth",
	},
	{
		Name: "a standby writes", File: "internal/baseline/keeper.go",
		Old: "if err == nil && took {", New: "if err == nil {",
		Test: "TestStandby",
	},
	{
		Name: "the shorter hour is kept", File: "internal/baseline/days.go",
		Old: "old.seconds() >= h.seconds()", New: "old.seconds() < h.seconds()",
		Test: "TestTheLongerHourIsKept",
	},
	{
		Name: "a process that takes keys over holds them anew", File: "aggregator/adopt.go",
		Old: "m.hold = earlier(m.hold, h.Since.Add(t.Hold))\n", New: "",
		Package: "internal/statsdsource", Test: "TestAKeyIsHeldFromWhenItBecameHot",
	},
	{
		Name: "both jumps over one window have one state when a key is adopted", File: "aggregator/adopt.go",
		Old: "if past != rules.OverRecent {", New: "if false {",
		Test: "TestDetectorAdoptsByThePast",
	},
	{
		Name: "a reload takes one jump for the other", File: "aggregator/keephot.go",
		Old: "range [...]bool{false, true}", New: "range [...]bool{true}",
		Test: "TestReloadKeepsThePast",
	},
	{
		Name: "the past of a jump is not published", File: "rules/kind.go",
		Old: "if _, past, found := strings.Cut(per, \" over \"); found {", New: "if _, past, found := strings.Cut(per, \" over \"); found && false {",
		Package: "internal/published", Test: "TestHotChangeRoundTrip",
	},
	{
		Name: "a jump over days is a second one", File: "rules/validate.go",
		Old: " && other.Over == t.Over", New: "",
		Package: "config", Test: "TestBadFiles|TestWrittenRulesAreReadBack",
	},
	{
		Name: "a jump over days is over the recent past", File: "aggregator/days.go",
		Old: "if t.Over == rules.OverDay && last != ring.Never {", New: "if t.Over == rules.OverDay && last == ring.Never {",
		Package: "aggregator", Test: "TestEveningPeakAndLongAttack",
	},
}
