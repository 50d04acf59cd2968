package mutants

// From hot keys to limits, and a log through all of it.

var publishedFaults = []Fault{
	{
		Name: "an entry never ends", File: "hotkeys/state.go",
		Old: "live := s.alive && now.Before(e.hot.Until)", New: "live := s.alive",
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
		Name: "a gap in the pushes is not noticed", File: "hotkeys/hints.go",
		Old: "change.Version.N > ours.N+1 || ", New: "",
		Test: "TestGapIsReadFromTheStream",
	},
}

var limitFaults = []Fault{
	{
		Name: "one call without an answer opens the breaker", File: "limiter/internal/breaker/silence.go",
		Old: "} else if !began.Before(n.timedOut) {", New: "}\n\tif !n.timedOut.IsZero() {",
		Test: "TestOneTimeOutIsNoFailure",
	},
	{
		Name: "what was granted locally is not charged", File: "limiter/failover_settle.go",
		Old: "f.owed.add(s, &op, res.Taken)", New: "_ = s",
		Test: "TestStallProperty",
	},
	{
		Name: "a charge that is sent again counts again", File: "limiter/redislimiter/lua/run.lua",
		Old: "if marked == mark then before = charged end", New: "",
		Package: "limiter/redislimiter", Test: "TestChargeOnce",
	},
	{
		Name: "a script does not know its deadline", File: "limiter/redislimiter/lua/time.lua",
		Old: "if till > 0 and now > till then return struct.pack('<d', now) end", New: "",
		Package: "limiter/redislimiter", Test: "TestDeadlineByRedisClock",
	},
	{
		Name: "a remembered denial lets all pass once a permit is back", File: "limiter/cached_denial.go",
		Old: "later := d.after(next, takes(op))", New: "later := next",
		Test: "TestCachedWhileCallsAreUnderWay",
	},
	{
		Name: "a bucket is never charged", File: "limiter/gcra.go",
		Old: "return start + n*g.interval, v\n", New: "return start, v\n",
		Test: "TestBucketConforms",
	},
	{
		Name: "a token costs a nanosecond too little", File: "limiter/gcra.go",
		Old: "(int64(rate.Per)-1)/rate.N + 1", New: "int64(rate.Per) / rate.N",
		Test: "TestBucketConforms",
	},
	{
		Name: "a bucket has one token more", File: "limiter/gcra.go",
		Old: "need > free {", New: "need > free+g.interval {",
		Test: "TestBucketConforms",
	},
	{
		Name: "a word is taken from while somebody has its state", File: "limiter/states_word.go",
		Old: "g.lent.word.Swap(gone)", New: "g.lent.word.Load()",
		Test: "TestALentWordIsGoneWhileItIsSettled|TestQuickTakesAreExact",
	},
	{
		Name: "a word is lent by the rate of an earlier quota", File: "limiter/states_word.go",
		Old: "g.lent.plan == nil || s.gcra != g.lent.plan.gcra", New: "g.lent.plan == nil",
		Test: "TestQuickTakesAreTakes|TestQuickTakesAreExact",
	},
	{
		Name: "a lent word follows a clock that is set back", File: "limiter/states_word.go",
		Old: "} else if t < last {", New: "} else if t < 0 {",
		Test: "TestQuickTakesAreTakes",
	},
	{
		Name: "the clock of takes without a lock is lost", File: "limiter/states_word.go",
		Old: "max(s.last, g.lent.last.Load())", New: "s.last",
		Test: "TestTheClockOfQuickTakesIsKnown",
	},
	{
		Name: "a window that is asked without an Op has one permit more", File: "limiter/window.go",
		Old: "free := w.free(t)\n", New: "free := w.free(t) + 1\n",
		Test: "TestQuickTakesAreTakes|TestQuickTakesAreExact",
	},
	{
		Name: "a key that was renewed is missing in a snapshot", File: "limiter/snapshot.go",
		Old: "if all == nil {", New: "if false {",
		Test: "TestAKeyIsRenewed",
	},
	{
		Name: "idle keys of other stripes keep a new one out", File: "limiter/semaphore/key.go",
		Old: "found := other.forget()", New: "found := false",
		Test: "TestSemaphoreFull|TestIdleKeysKeepNobodyOut",
	},
	{
		Name: "a lease that was released releases the next", File: "limiter/semaphore/slot.go",
		Old: "s.id == id && s.n > 0", New: "s.n > 0",
		Test: "TestSemaphoreIsItsModel",
	},
	{
		Name: "two leases of one slot have the same id", File: "limiter/semaphore/slot.go",
		Old: "(s.id | 1) + 1", New: "s.id &^ 1",
		Test: "TestSemaphoreIsItsModel",
	},
	{
		Name: "a mark of a part that is left is used again", File: "limiter/line.go",
		Old: "!last || ask.Keep > 0 ||", New: "!last ||",
		Test: "TestBucketConforms",
	},
	{
		Name: "what was taken last and returned stays in the line", File: "limiter/redislimiter/lua/bucket.lua",
		Old: "b.line = b.line - math.floor(back / b.cost)", New: "b.line = b.line",
		Package: "limiter/redislimiter", Test: "TestReturnsInReverseOrder",
	},
	{
		Name: "a key whose marks are still to come is dropped", File: "limiter/keys_word.go",
		Old: "word+w.back() <= now && ", New: "",
		Test: "TestMarksOfDroppedKey",
	},
	{
		Name: "what was earned is given back late", File: "limiter/deferred_state.go",
		Old: "N: op.N - int64(", New: "N: op.N - 0*int64(",
		Test: "TestDeferredGivesBackNothingEarned",
	},
	{
		Name: "tokens are not given back", File: "middleware/request.go",
		Old: "r.giveBack()", New: "",
		Test: "TestEachGivesBack",
	},
	{
		Name: "an allowed value is counted", File: "middleware/except.go",
		Old: "case x.Action == hotparam.Allow:", New: "case false:",
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
		Old: "place := max(first, time.Duration(free))", New: "place := max(second, time.Duration(free))",
		Test: "TestRetriesComeAtTheLimitsRate",
	},
	{
		Name: "all clients are told to retry at the same time", File: "middleware/backoff.go",
		Old: "int64(place+min(interval, maxBackoff))", New: "int64(place)",
		Test: "TestRetriesComeAtTheLimitsRate",
	},
	{
		Name: "each instance invites as many as all may be", File: "middleware/backoff.go",
		Old: "	if s.isExact() {\n		times = float64(instances)\n	}\n", New: "",
		Test: "TestBackoffInterval",
	},
	{
		Name: "the short way refuses what a limit in shadow mode passes", File: "middleware/limitspec.go",
		Old: "s.limit.Mode == hotparam.ModeLimit && ", New: "",
		Test: "TestPlainIsCheck",
	},
	{
		Name: "the short way keeps the quota of fewer instances", File: "middleware/plain.go",
		Old: "key.bucketUnder(quota, spec, g.opts.clock)", New: "key.bucket.Load()",
		Test: "TestShare",
	},
	{
		Name: "an answer by Begin states no limit", File: "middleware/answer.go",
		Old: "	a.Header = s.headers.add(a.Header, &d, s)\n", New: "",
		Test: "TestHeaders",
	},
	{
		Name: "a recorded answer states no limit", File: "middleware/answer.go",
		Old: "maps.Copy(w.Header(), h.spec.headers", New: "maps.Copy(make(http.Header), h.spec.headers",
		Test: "TestServeRecorded",
	},
	{
		Name: "a cost is not counted", File: "middleware/cost.go",
		Old: "g.counts.Add(o.hash, key, uint64(min(left, most)))", New: "",
		Test: "TestCostsOfHotKeys",
	},
}

var replayFaults = []Fault{
	{
		Name: "standard input is not sorted", File: "internal/accesslog/reorder.go",
		Old: "max(b.due, b.newest-b.span)", New: "b.newest",
		Package: "internal/replay", Test: "TestOrderOfCompletion",
	},
	{
		Name: "what is out of order is not told", File: "internal/accesslog/reorder.go",
		Old: "if nanos < b.given {", New: "if false {",
		Test: "TestReorder",
	},
	{
		Name: "the buffer is not emptied at the end", File: "internal/accesslog/accesslog.go",
		Old: "order.finish()", New: "",
		Test: "TestReorder",
	},
	{
		Name: "a log that is followed waits for its next line", File: "internal/accesslog/accesslog.go",
		Old: "order.pass(began, time.Now())", New: "_ = began",
		Test: "TestReorderWhileNoLineComes",
	},
	{
		Name: "the reorder buffer has no bound", File: "internal/accesslog/reorder.go",
		Old: "if b.bytes <= b.most {", New: "if true {",
		Test: "TestReorderIsBounded",
	},
	{
		Name: "a trusted proxy's header is read of any peer", File: "middleware/clientaddr.go",
		Old: "ok && !isTrusted(c, ip) ||", New: "",
		Test: "TestClientAddr",
	},
	{
		Name: "a quote that a client opens hides a proxy's entry", File: "middleware/forwarded.go",
		Old: "comma = lastComma(h.rest)", New: `comma = strings.LastIndex(h.rest[:max(0, strings.IndexByte(h.rest, '"'))], ",")`,
		Test: "TestClientAddr",
	},
	{
		Name: "a key has two levels of the address", File: "combinations.go",
		Old: "levels&(levels-1) != 0;", New: "levels>>31 != 0;",
		Test: "TestCombinationsHaveOneLevel",
	},
}
