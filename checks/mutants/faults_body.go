package mutants

// Faults in the bodies that rules read, and in the bodies that handlers still get.

var bodyFaults = []Fault{
	{
		Name: "the rest of a body is lost", File: "middleware/heldbody.go",
		Old: "return h.unread.Read(p)\n", New: "return 0, io.EOF\n",
		Test: "TestHandlersSeeTheSameBody|TestKeysOfBodies",
	},
	{
		Name: "an error of a body is lost", File: "middleware/heldbody.go",
		Old: "held.err = err\n", New: "",
		Test: "TestErrorsAreReplayed",
	},
	{
		Name: "what bodies take is never given back", File: "middleware/heldbody.go",
		Old: "m.total.Add(-m.size.Swap(0))", New: "m.size.Store(0)",
		Test: "TestHeldBytesAreBounded|TestKeysOfBodies",
	},
	{
		Name: "what bodies take has no bound", File: "middleware/heldbody.go",
		Old: "m.total.Add(n) > limit", New: "m.total.Add(n) < 0",
		Test: "TestHeldBytesAreBounded",
	},
	{
		Name: "a body that cannot be read evades its rule", File: "middleware/body.go",
		Old: "return r.body.state == bodyUnread && c.body.has(r.body.source)", New: "return false",
		Test: "TestUnread|TestKeysOfBodies",
	},
	{
		Name: "a body that claims to be compressed evades its rule", File: "middleware/body.go",
		Old: "r.endUnread(encoded)", New: "b.state = bodyAbsent",
		Test: "TestBodiesThatAreNotRead",
	},
	{
		Name: "bodies are read before others deny", File: "middleware/route.go",
		Old: "	if r.readsBody() {\n		n++\n	}\n", New: "",
		Test: "TestBodiesAreReadLast|TestNoContinueForDenied",
	},
	{
		Name: "bodies are read before the backend denies", File: "middleware/body.go",
		Old: "		r.askBackend()\n", New: "",
		Test: "TestBackendIsAskedBeforeBodies",
	},
	{
		Name: "the case of a name hides a value", File: "middleware/json.go",
		Old: "strings.EqualFold(name, steps[depth].Name)", New: "strings.Compare(name, steps[depth].Name) == 0",
		Test: "TestKeysOfBodies",
	},
	{
		Name: "bodies that cannot be read are all of their route", File: "aggregator/internal/window/groups.go",
		Old: "case base.IsMore(text), base.IsUnread(text):", New: "case base.IsMore(text):",
		Package: "aggregator", Test: "TestShareIsOfRequests",
	},
}
