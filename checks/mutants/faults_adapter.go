package mutants

// adapterFaults are faults between a framework and a guard.
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
		Old: "x.restore(r) // the guard may have made another request", New: "",
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
	{
		Name: "a stream that sends nothing holds no permit", File: "middleware/rpc/stream.go",
		Old: "	if a.guard.ReadsMessage(Resource(method)) {", New: "	if true {",
		Test: "TestStream",
	},
	{
		Name: "what a handler of a stream adds to its cost is lost", File: "middleware/rpc/stream.go",
		Old: "s.adapter.beginCall(s.ctx, s.method, s.origin, message, nil, s.units)", New: "s.adapter.beginCall(s.ctx, s.method, s.origin, message, nil, nil)",
		Test: "TestStreamUnits",
	},
	{
		Name: "a call that ended while it waited is told to retry", File: "middleware/rpc/refusal.go",
		Old: "	if err := ctx.Err(); err != nil {", New: "	if err := ctx.Err(); err != nil && false {",
		Test: "TestEndedContext",
	},
	{
		Name: "a rule's answer sets headers of the protocol", File: "middleware/rpc/refusal.go",
		Old: `strings.HasPrefix(name, "Grpc-") || `, New: "",
		Test: "TestMetadata",
	},
	{
		Name: "the answer of middleware in front is shared", File: "middleware/leader.go",
		Old: "	default:\n		Withhold(w)\n	}\n}\n\n// dropped", New: "	}\n}\n\n// dropped",
		Test: "TestRestart",
	},
	{
		Name: "a run may come to the guard as another request", File: "middleware/leader.go",
		Old: "	case r.Pattern != x.pattern || *r.URL != *x.url:", New: "	case false:",
		Test: "TestRestart",
	},
	{
		Name: "an answer is shared while its handler runs", File: "middleware/leader.go",
		Old: "	case runReturned:\n", New: "	case runReturned, runPassed:\n",
		Test: "TestRestartReturnsEarly",
	},
	{
		Name: "calls of all methods are answered together", File: "middleware/onhot.go",
		Old: " || r.Match.Route.String() == in.Pattern", New: " || r.Match.Route.Resource(in.Pattern)",
		Test: "TestShareResources",
	},
	{
		Name: "a run has a URL that is not in the key", File: "middleware/adapter/adapter.go",
		Old: "	if !isSent(x.url, x.in) {", New: "	if false {",
		Test: "TestLead",
	},
	{
		Name: "calls with different messages are answered together", File: "middleware/rpc/onhot.go",
		Old: "RawQuery: message}", New: "RawQuery: message[:0]}",
		Test: "TestUnaryTogether",
	},
	{
		Name: "errors of a run are shared", File: "middleware/rpc/onhot.go",
		Old: "	case code != 0 || !ok:", New: "	case !ok:",
		Test: "TestUnaryAlone",
	},
}
