package mutants

// Faults in the guard's handling of requests and in its answers.

var guardFaults = []Fault{
	{
		Name: "an allowed value is counted", File: "middleware/except.go",
		Old: "case x.Action == rules.Allow:", New: "case false:",
		Test: "TestExceptions",
	},
	{
		Name: "an RPC's resource is taken for the pattern of a host", File: "middleware/check.go",
		Old: "case in.Method == \"\" && in.Path == \"\":", New: "case false:",
		Test: "TestRPC",
	},
	{
		Name: "a request of net/http is made again and again", File: "middleware/check.go",
		Old: "		in.MakeHTTP = nil\n", New: "		defer func() { in.HTTP = nil }()\n",
		Test: "TestBeginAnswersAsHandlerDoes|TestRPC",
	},
	{
		Name: "clients are told to retry before they can pass", File: "middleware/backoff.go",
		Old: "place := max(first, time.Duration(free))", New: "place := max(thisSecond, time.Duration(free))",
		Test: "TestRetriesComeAtTheLimitsRate",
	},
	{
		Name: "all clients are told to retry at the same time", File: "middleware/backoff.go",
		Old: "int64(place+min(interval, maxBackoff))", New: "int64(place)",
		Test: "TestRetriesComeAtTheLimitsRate",
	},
	{
		Name: "each instance invites as many as all may be", File: "middleware/backoff.go",
		Old: "	if s.byBackend {\n		sharers = float64(instances)\n	}\n", New: "",
		Test: "TestBackoffInterval",
	},
	{
		Name: "the short way refuses what a limit in shadow mode passes", File: "middleware/limitspec.go",
		Old: "s.limit.Mode == rules.ModeLimit && ", New: "",
		Test: "TestPlainIsCheck",
	},
	{
		Name: "the short way keeps the quota of fewer instances", File: "middleware/plain.go",
		Old: "key.bucketUnder(quota, spec, g.opts.clock)", New: "key.bucket.Load()",
		Test: "TestShare",
	},
	{
		Name: "an answer by Begin states no limit", File: "middleware/answer.go",
		Old: "	s.setHeaders(a.Header, &d)\n", New: "",
		Test: "TestBeginAnswersAsHandlerDoes",
	},
	{
		Name: "a request that passes states no limit", File: "middleware/http.go",
		Old: "		spec.setHeaders(w.Header(), d)\n", New: "",
		Test: "TestHeaders",
	},
	{
		Name: "a recorded answer states no limit", File: "middleware/answer.go",
		Old: "h.spec.setHeaders(w.Header(), &d)", New: "h.spec.setHeaders(make(http.Header), &d)",
		Test: "TestServeRecorded",
	},
	{
		Name: "a refusal states no limit", File: "middleware/answer.go",
		Old: "		spec.addHeaders(b, d)\n", New: "",
		Test: "TestHeadersLegacy",
	},
	{
		Name: "a refusal's buffer is used again while its body is written", File: "middleware/answer.go",
		Old: "	writeBody(w, r, p.Status, b.Body)\n	b.Free()\n", New: "	body := b.Body\n	b.Free()\n	writeBody(w, r, p.Status, body)\n",
		Test: "TestRefusalsShareNothing",
	},
	{
		Name: "a second value of a header overwrites the next header", File: "internal/answer/buffer.go",
		Old: "values[i : i+1 : i+1]", New: "values[i : i+1]",
		Test: "TestHeadersAreTheServers",
	},
	{
		Name: "a cost is not counted", File: "middleware/cost.go",
		Old: "g.counts.Add(o.hash, key, uint64(min(left, maxAdd)))", New: "",
		Test: "TestCostsOfHotKeys",
	},
	{
		Name: "requests that an operator allows count as admitted", File: "middleware/hotstate.go",
		Old: "	h.exempt.Add(1)\n", New: "",
		Test: "TestAdmitted",
	},
	{
		Name: "what a key admitted when it was hot before counts", File: "middleware/admitted.go",
		Old: "return s.when.Before(old)", New: "return false",
		Test: "TestAdmitted",
	},
	{
		Name: "answers from memory count since the key became hot", File: "middleware/admitted.go",
		Old: "Stored: onHot.Stored - first.onHot.Stored", New: "Stored: onHot.Stored",
		Test: "TestAdmittedOnHot",
	},
	{
		Name: "the outcomes of an earlier time as a hot key count again", File: "middleware/hotstate.go",
		Old: "before: h.outcomesEver()})", New: "})",
		Test: "TestHotKeyOutcomes",
	},
	{
		Name: "requests that an operator blocks are not refused ones of the key", File: "middleware/control.go",
		Old: "hot.Payload.record(false)", New: "",
		Test: "TestHotKeyOutcomes",
	},
	{
		Name: "keys beyond the room of a heartbeat are never reported", File: "middleware/admitted.go",
		Old: "return cmp.Compare(states[i].reported, states[j].reported)", New: "return 0 * cmp.Compare(i, j)",
		Test: "TestReportsRotate",
	},
	{
		Name: "a heartbeat that was overtaken counts again", File: "internal/admitted/totals.go",
		Old: "x.Plus(o.Minus(x.Outcomes))", New: "*o",
		Test: "TestTotals",
	},
	{
		Name: "the outcomes of instances that have left are dropped with an aggregator", File: "internal/admitted/totals.go",
		Old: "k.adopted, k.sum, k.before = true, *h.Outcomes, h.Outcomes.Gone", New: "k.adopted, k.sum = true, *h.Outcomes",
		Test: "TestTotals",
	},
	{
		Name: "an instance leaves without its last outcomes", File: "hotkeys/heartbeat.go",
		Old: "if len(m.Admitted) > 0 {", New: "if false {",
		Test: "TestLastHeartbeat",
	},
	{
		Name: "readers reject a heartbeat with the reason of a foreign sharer", File: "internal/published/admitted.go",
		Old: "if !validReason(of.onHot.AloneFor)", New: "if false",
		Test: "TestAdmittedInHeartbeat",
	},
	{
		Name: "the bound ignores that instances report at different times", File: "internal/admitted/admitted.go",
		Old: "within := s.last.Sub(s.first) + inexact", New: "within := 10 * time.Second",
		Test: "TestGauges",
	},
}
