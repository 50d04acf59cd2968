package mutants

// adapterFaults are those between a router and a guard.
var adapterFaults = []Fault{
	{
		Name: "the path that was sent counts, not the router's", File: "middleware/adapter/adapter.go",
		Old: "	r.URL = &u\n", New: "",
		Test: "TestValues",
	},
	{
		Name: "an empty parameter hides the others", File: "middleware/adapter/template.go",
		Old: `emptyValue = "\x00"`, New: `emptyValue = ""`,
		Test: "TestValues",
	},
	{
		Name: "the handler gets the guard's pattern", File: "middleware/adapter/adapter.go",
		Old: "x.restore(r) // the guard may have made another", New: "_ = r",
		Test: "TestGuardsOwnRequest",
	},
	{
		Name: "a request that is refused keeps the guard's pattern", File: "middleware/adapter/adapter.go",
		Old: "	if !passed {", New: "	if passed {",
		Test: "TestRestores",
	},
	{
		Name: "a scan makes a key of each path", File: "middleware/options.go",
		Old: `		return Unrouted
	})`, New: `		return ""
	})`,
		Package: "middleware/middlewaretest", Test: "TestServeMux",
	},
}
