package mutants

// Faults in answers that identical requests share.

var onHotFaults = []Fault{
	{
		Name: "answers that set a cookie are shared", File: "internal/onhot/answer.go",
		Old: "	case has(h, \"Set-Cookie\"):\n", New: "	case false:\n",
		Test: "TestTwoUsers",
	},
	{
		Name: "header names as the handler wrote them", File: "internal/onhot/recorder.go",
		Old: "		name = http.CanonicalHeaderKey(name)\n", New: "",
		Test: "TestTwoUsers",
	},
	{
		Name: "the leader's handler sees all headers", File: "internal/onhot/leader.go",
		Old: "	header := make(http.Header, len(p.headers)+2)\n", New: "	header := r.Header.Clone()\n",
		Test: "TestTwoUsers",
	},
	{
		Name: "the leader's handler sees the context of a user", File: "internal/onhot/leader.go",
		Old: "ctx := c.base", New: "ctx := r.Context()",
		Test: "TestTwoUsers",
	},
	{
		Name: "an answer with trailers after its body is shared", File: "internal/onhot/recorder.go",
		Old: "		return nil, ReasonTrailer\n", New: "		return a, ReasonTrailer\n",
		Test: "TestTwoUsers",
	},
	{
		Name: "a header in vary is not in the key", File: "internal/onhot/key.go",
		Old: "	for _, name := range p.headers {\n", New: "	for _, name := range p.headers[:len(p.headers)/2] {\n",
		Test: "TestKeyIsWhatTheHandlerSees",
	},
	{
		Name: "the parts of a key have no lengths", File: "internal/onhot/key.go",
		Old: "append(binary.AppendUvarint(b, uint64(len(s))), s...)", New: "append(b, s...)",
		Test: "TestKeyIsWhatTheHandlerSees",
	},
	{
		Name: "all cookies reach the leader's handler", File: "internal/onhot/key.go",
		Old: "if slices.Contains(p.cookies, textproto.TrimString(name)) {", New: "if slices.Contains(p.cookies, name) || true {",
		Test: "TestKeyIsWhatTheHandlerSees",
	},
	{
		Name: "an answer that varies by another header is shared", File: "internal/onhot/answer.go",
		Old: "name != \"\" && !p.varies(name)", New: "name == \"*\" && !p.varies(name)",
		Test: "TestTwoUsers",
	},
	{
		Name: "a body shorter than its Content-Length is shared", File: "internal/onhot/recorder.go",
		Old: "declared[0] != strconv.Itoa(len(a.body))", New: "declared[0] == \"\"",
		Test: "TestTwoUsers",
	},
	{
		Name: "what a handler has written before its panic is shared", File: "internal/onhot/leader.go",
		Old: "		case !returned: // it panicked, or called runtime.Goexit\n", New: "		case !returned && v == nil:\n",
		Test: "TestTwoUsers",
	},
	{
		Name: "what a handler writes after its deadline is shared", File: "internal/onhot/leader.go",
		Old: "		case leader.Context().Err() != nil: ", New: "		case leader.Context() == nil: ",
		Test: "TestDeadlineIsSeenByTheHandler",
	},
	{
		Name: "a proxy cannot see that it serves a server", File: "internal/onhot/leader.go",
		Old: "server != nil {", New: "server == nil {",
		Test: "TestProxyOfATruncatedBody",
	},
	{
		Name: "requests join a leader from before an invalidation", File: "internal/onhot/flight.go",
		Old: "f != nil && c.generations.valid(&f.stamp) {", New: "f != nil {",
		Test: "TestInvalidationDuringAFill",
	},
	{
		Name: "an answer from before an invalidation is used", File: "internal/onhot/flight.go",
		Old: "	if e == nil || !c.generations.valid(&e.stamp) {\n", New: "	if e == nil {\n",
		Test: "TestTwoUsers",
	},
	{
		Name: "max-age does not shorten the stale time", File: "internal/onhot/answer.go",
		Old: "		t.stale = min(t.stale, left-t.fresh)\n", New: "",
		Test: "TestAnswersThatAreShared",
	},
	{
		Name: "a stale answer is used after must-revalidate", File: "internal/onhot/answer.go",
		Old: "if d.mustRevalidate || d.sMaxAge >= 0 {", New: "if d.sMaxAge >= 0 {",
		Test: "TestAnswersThatAreShared",
	},
	{
		Name: "each request refreshes a stale answer", File: "internal/onhot/flight.go",
		Old: "		case !f.ended && p.Coalesce && !refresh:\n", New: "		case !f.ended && refresh:\n		case !f.ended && p.Coalesce:\n",
		Test: "TestStale",
	},
	{
		Name: "a failed refresh is repeated at once", File: "internal/onhot/store.go",
		Old: "int64(kept) >= e.retry.Load()", New: "true",
		Test: "TestStale",
	},
	{
		Name: "a client that leaves ends the leader", File: "internal/onhot/leader.go",
		Old:  "	return context.WithTimeout(ctx, c.config.Deadline)\n",
		New:  "	ctx, cancel := context.WithTimeout(ctx, c.config.Deadline)\n	context.AfterFunc(r.Context(), cancel)\n	return ctx, cancel\n",
		Test: "TestClientsThatLeave",
	},
	{
		Name: "a handler that hangs gets another beside it", File: "internal/onhot/flight.go",
		Old: "		case f.ended && f.answer == nil:\n", New: "		case f.ended && f.answer != nil:\n",
		Test: "TestDeadline",
	},
	{
		Name: "expired answers stay until the next", File: "internal/onhot/store.go",
		Old: "	s.entries.CleanUp()\n	if !s.closed", New: "	if !s.closed",
		Test: "TestIdleMemory",
	},
	{
		Name: "bodies have no weight", File: "internal/onhot/store.go",
		Old: "cost += cap(e.answer.body) + ", New: "cost += ",
		Test: "TestMemory",
	},
	{
		Name: "a recording takes memory without a reservation", File: "internal/onhot/recorder.go",
		Old: "	w.reserved = int64(size)\n", New: "	w.reserved = int64(need)\n",
		Test: "TestRecordingReservesItsMemory",
	},
	{
		Name: "Authorization is not looked at if it is empty", File: "internal/onhot/request.go",
		Old: "len(h[name]) > 0 }", New: "h.Get(name) != \"\" }",
		Test: "TestRequestsThatAreNotShared",
	},
	{
		Name: "an unclosed quote hides a directive", File: "internal/onhot/directives.go",
		Old: "			d.noStore = true\n				break\n", New: "				break\n",
		Test: "TestParseDirectives",
	},
	{
		Name: "304 without a copy at the client", File: "internal/onhot/reply.go",
		Old: "return ok && !modified.After(since)", New: "return !modified.After(since)",
		Test: "TestConditions",
	},
	{
		Name: "what a rule blocks is answered from memory", File: "middleware/onhot.go",
		Old: "	if r.shared != nil && !r.refusing {", New: "	if r.shared != nil {",
		Test: "TestTwoStepsAreOne",
	},
	{
		Name: "spared keys are answered from memory", File: "middleware/onhot.go",
		Old: "	return r.sharing != nil && !hot.IsExempt()", New: "	return r.sharing != nil",
		Test: "TestTwoStepsAreOne",
	},
	{
		Name: "a request that is answered together is counted again at the limit", File: "middleware/onhot.go",
		Old: "func (s Steps) counts() bool { return s != LimitStep }", New: "func (s Steps) counts() bool { return true }",
		Test: "TestTwoStepsAreOne",
	},
	{
		Name: "a request that goes on to its limit counts twice as a decision", File: "middleware/limit.go",
		Old: "		r.unshared = cl.rule.rule\n", New: "",
		Test: "TestTwoStepsAreOne",
	},
	{
		Name: "the same for rules that need no request", File: "middleware/plain.go",
		Old: "		spec.decisions.asked.addOne(uint32(n))\n", New: "",
		Test: "TestEachRequestCountsOnce",
	},
	{
		Name: "a run that refreshes an answer counts as a request", File: "middleware/runcheck.go",
		Old: "outcome != Led && outcome != Refused && outcome != Left:", New: "outcome == Alone:",
		Test: "TestEachRequestCountsOnce",
	},
	{
		Name: "a request that is handled alone after its run counts twice", File: "middleware/runcheck.go",
		Old: "outcome != Led && outcome != Refused && outcome != Left:", New: "run.refresh:",
		Test: "TestEachRequestCountsOnce",
	},
	{
		Name: "a refused refresh is a refused request", File: "middleware/refuse.go",
		Old: "	if r.in.run.refreshes() {", New: "	if false {",
		Test: "TestEachRequestCountsOnce",
	},
	{
		Name: "the second pass of a request counts again", File: "middleware/onhot.go",
		Old: "	r.counts, r.asks = false, true", New: "	r.asks = true",
		Test: "TestTwoStepsAreOne",
	},
	{
		Name: "failed requests invalidate", File: "middleware/changed.go",
		Old: "	if status < http.StatusBadRequest && g.remembers", New: "	if g.remembers",
		Test: "TestInvalidates",
	},
	{
		Name: "requests to all paths invalidate", File: "middleware/changed.go",
		Old: "r.sharing != nil && r.Match.Route.Covers(path)", New: "r.sharing != nil",
		Test: "TestInvalidates",
	},
	{
		Name: "only requests with the method of a rule invalidate", File: "middleware/changed.go",
		Old: "r.sharing != nil && r.Match.Route.Covers(path)", New: "r.sharing != nil && r.Match.Route.Matches(\"POST\", path)",
		Package: "internal/sharing", Test: "TestChangesReachWhatIsKept",
	},
	{
		Name: "answers to paths that are not the rule's are kept", File: "internal/sharing/sharing.go",
		Old: "	if x.rule.Match.Route.Covers(r.URL.EscapedPath()) {", New: "	if true {",
		Test: "TestChangesReachWhatIsKept",
	},
	{
		Name: "a key that has cooled is no longer invalidated", File: "middleware/changed.go",
		Old: "	return last > 0 && (g.someHot.Load() || time.Since(time.Unix(0, last)) < rememberedFor)", New: "	return last > 0 && g.someHot.Load()",
		Test: "TestInvalidates",
	},
	{
		Name: "a rule that changes keeps its answers", File: "internal/sharing/sharing.go", Package: ".",
		Old: "	if x := a.inForce[r.ID]; x.isOf(r) {", New: "	if x := a.inForce[r.ID]; x != nil {",
		Test: "TestReloadInvalidatesChangedRules",
	},
	{
		Name: "a rule by a user shares its answers", File: "rules/onhot.go",
		Old: "		case p.Source == Ctx || p.Source == Addr:", New: "		case p.Source == Addr:",
		Test: "TestOnHotIsSafe",
	},
	{
		Name: "a rule by a header that the handler does not see shares its answers", File: "rules/onhot.go",
		Old: "		case p.Source == Header || p.Source == Cookie:", New: "		case p.Source == Cookie:",
		Test: "TestOnHotIsSafe",
	},
	{
		Name: "cookies whose names have spaces around are kept from the handler", File: "internal/onhot/key.go",
		Old: "slices.Contains(p.cookies, textproto.TrimString(name))", New: "slices.Contains(p.cookies, name)",
		Test: "TestNamedCookies",
	},
	{
		Name: "dates that are not valid are read", File: "internal/onhot/directives.go",
		Old: "return t, strings.EqualFold(got, want)\n", New: "return t, strings.EqualFold(got, want) || true\n",
		Package: "checks/cachetests", Test: "TestSuite",
	},
	{
		Name: "Proxy-Authorization is stored", File: "internal/onhot/answer.go",
		Old: "	\"Proxy-Authorization\", ", New: "	",
		Package: "checks/cachetests", Test: "TestSuite",
	},
	{
		Name: "a policy that names * shares answers that vary by all", File: "rules/onhot.go",
		Old: "case p.Source == Header && p.Name == \"*\":", New: "case false:",
		Package: "internal/onhot", Test: "TestVaryByAll",
	},
	{
		Name: "an answer's age when it comes does not count", File: "internal/onhot/answer.go",
		Old: "left := lifetime - age\n", New: "left := lifetime\n",
		Package: "checks/cachetests", Test: "TestSuite",
	},
}
