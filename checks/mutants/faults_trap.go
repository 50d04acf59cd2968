package mutants

// Faults in the warnings about a file or a program that is valid but probably not intended.

var trapFaults = []Fault{
	{
		Name: "a limit of the threshold's rate is warned of", File: "config/warnings.go",
		Old: "l.Rate.PerSecond() > hot.PerSecond()", New: "l.Rate.PerSecond() >= hot.PerSecond()",
		Test: "TestWarnings",
	},
	{
		Name: "a name with its source is warned of", File: "config/warnings.go",
		Old: ` || strings.Contains(n.text, ":")`, New: "",
		Test: "TestWarnings",
	},
	{
		Name: "warnings have no place among those of the file", File: "config/warnings.go",
		Old: "slices.Concat(Problems(f.warnings), f.openListeners())", New: "slices.Concat(f.openListeners(), f.warnings[:0])",
		Test: "TestPlacesOfWarnings",
	},
	{
		Name: "a colon joins what has a space before it", File: "config/colon.go",
		Old: "isPlain(before) && adjoin(before, colon)", New: "isPlain(before)",
		Test: "TestListsThatAreNoText|TestListsOfAddresses",
	},
	{
		Name: "a colon within braces is text", File: "config/colon.go",
		Old: "open[len(open)-1] == token.SequenceStartType {", New: "open[0] != 0 {",
		Test: "TestListsThatAreNoText",
	},
	{
		Name: "paths below a wildcard of the rest are too many", File: "middleware/concrete.go",
		Old: ` && !strings.HasSuffix(part, "...}")`, New: "",
		Test: "TestConcreteRoutes",
	},
	{
		Name: "a known route is counted again", File: "middleware/routecache.go",
		Old: "if !known.room(method, name) || known.slotFor(method, name).route != nil {", New: "if !known.room(method, name) {",
		Test: "TestConcreteRoutes|TestRouteTableIsAMap",
	},
}
