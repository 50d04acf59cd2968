package mutants

// Faults in acting from the page and the terminal.

var operateFaults = []Fault{
	{
		Name: "the effect of an action forgets the burst between seconds", File: "internal/live/effect.go",
		Old: "	b.tokens = min(b.burst, max(0, free-requests))\n", New: "",
		Test: "TestEffect",
	},
}
