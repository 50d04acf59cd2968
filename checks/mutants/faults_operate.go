package mutants

// Faults in acting from the page and the terminal.

var operateFaults = []Fault{
	{
		Name: "the effect of an action forgets the burst between seconds", File: "internal/live/effect.go",
		Old: "	b.tokens = min(b.burst, max(0, free-requests))\n", New: "",
		Test: "TestEffect",
	},
	{
		Name: "an action needs no header of its own", File: "internal/page/act.go",
		Old: "if r.Header.Get(actHeader) == \"\" {", New: "if false {",
		Test: "TestActIsRefused",
	},
	{
		Name: "a confirmation is good twice", File: "internal/page/confirmation.go",
		Old: "	delete(c.open, id)\n	return taken, true", New: "	return taken, true",
		Test: "TestReplay",
	},
	{
		Name: "a confirmation is good for others", File: "internal/page/confirmation.go",
		Old: "taken.author != author || ", New: "",
		Test: "TestReplay",
	},
	{
		Name: "a confirmation has no end", File: "internal/page/confirmation.go",
		Old: "|| !now.Before(taken.until) {", New: "{",
		Test: "TestReplay",
	},
	{
		Name: "actions have no bound", File: "internal/page/act.go",
		Old: "err != nil || !d.Allowed || !a.all.Allow()", New: "err != nil || d.Rule == \"\"",
		Test: "TestActsAreBounded",
	},
	{
		Name: "a session of the reading page acts", File: "internal/page/session.go",
		Old: "\"hotparam page session v1 \" + cookie", New: "\"hotparam page session v1 \"",
		Test: "TestActIsRefused",
	},
	{
		Name: "the page that acts starts off loopback without TLS", File: "cmd/hotparam/operate.go",
		Old: "if encryption == nil && !page.IsLoopback(", New: "if false && !page.IsLoopback(",
		Test: "TestOperateRefusesToStart",
	},
}
