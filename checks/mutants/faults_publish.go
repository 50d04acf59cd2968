package mutants

// Faults in the published set of hot keys.

var publishedFaults = []Fault{
	{
		Name: "an entry never ends", File: "hotkeys/state.go",
		Old: "live := now.Before(entryEnd) || now.Before(holdEnd)", New: "live := e.shown || now.Before(entryEnd)",
		Test: "TestNothingOutlivesItsEnd",
	},
	{
		Name: "entries outlive the heartbeat", File: "hotkeys/state.go",
		Old: "alive := now.Before(s.beat)", New: "alive := true",
		Test: "TestNothingOutlivesItsEnd",
	},
	{
		Name: "a push does not raise the version", File: "hotkeys/state.go",
		Old: "s.version = c.Version\n", New: "",
		Test: "TestPushAppliesTheNextChange",
	},
	{
		Name: "a change does not raise the version", File: "hotkeys/lua/change.lua",
		Old: "commit(run, n + 1,", New: "commit(run, n,",
		Package: "hotkeys",
		Test:    "TestPushAppliesTheNextChange|TestGapIsReadFromTheStream",
	},
	{
		Name: "the digest of suspects is ignored", File: "hotkeys/fleet.go",
		Old: "same := beat.Suspects == w.state.fleet.digest", New: "same := true",
		Test: "TestFleetFollowed",
	},
	{
		Name: "suspects are not held against their digest when read", File: "hotkeys/fleet.go",
		Old: "if digest(slices.Values(members)) != beat.Suspects {", New: "if false {",
		Test: "TestForeignSuspectsAreReadAgain",
	},
	{
		Name: "a gap in the pushes is not noticed", File: "hotkeys/hints.go",
		Old: "change.Version.N > ours.N+1 || ", New: "",
		Test: "TestGapIsReadFromTheStream",
	},
}
