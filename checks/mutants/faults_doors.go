package mutants

var doorFaults = []Fault{
	{
		Name: "a connection in use is closed for any other", File: "internal/connlimit/limiter.go",
		Old: "if chosen != nil && !places.Yields(chosen.peer, newcomer) {", New: "if false {",
		Test: "TestTheIdlestConnectionGivesWay|TestLimiterBounds",
	},
	{
		Name: "the connection that was used last is closed", File: "internal/connlimit/limiter.go",
		Old: "c.since.After(idlest.since)", New: "c.since.Before(idlest.since)",
		Test: "TestTheIdlestConnectionGivesWay",
	},
	{
		Name: "an idle connection of another peer is kept while a request is refused", File: "internal/connlimit/limiter.go",
		Old: "chosen = l.idlest(func(*Conn) bool { return true })", New: "",
		Test: "TestLimiterBounds",
	},
	{
		Name: "a connection that has just come is closed for lack of descriptors", File: "internal/connlimit/listener.go",
		Old: "return !c.since.After(before)", New: "return before.Year() > 0",
		Test: "TestNoDescriptor",
	},
	{
		Name: "any address may connect to a door", File: "internal/connlimit/limiter.go",
		Old: "return p.Contains(ip)", New: "return p.Contains(ip) || true",
		Test: "TestAllow",
	},
	{
		Name: "a door counts a reason nowhere", File: "internal/gateway/rls/door.go",
		Old: "gateway.TooMany, ", New: "",
		Test: "TestUnusableDescriptors",
	},
	{
		Name: "the counters of a second door of one name are lost", File: "internal/gateway/service/doors.go",
		Old: "sum.Faults[reason] += n", New: "sum.Faults[reason] = n",
		Test: "TestFiguresAreOfAllDoors",
	},
	{
		Name: "a POST takes no tokens, since a cache could answer it", File: "middleware/onhot.go",
		Old: "(sharesMethod(in.Method) || in.Method == \"\" && in.Path == \"\")", New: "true",
		Package: "internal/gateway/auth", Test: "TestSteps",
	},
	{
		Name: "requests are counted again behind a cache", File: "internal/gateway/auth/door.go",
		Old: `"/limit": middleware.LimitStep`, New: `"/limit": middleware.AllSteps`,
		Test: "TestSteps",
	},
	{
		Name: "an endpoint takes the path of another's step", File: "internal/gateway/auth/door.go",
		Old: "&& isBelow && isStep", New: "&& isBelow && isStep && other.Scheme == Envoy",
		Test: "TestStepPaths",
	},
}
