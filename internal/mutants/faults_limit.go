package mutants

// From hot keys to limits, and a log through all of it.

var publishedFaults = []Fault{
	{
		Name: "an entry never ends", File: "hotkeys/state.go",
		Old: "live := now.Before(own) || now.Before(hold)", New: "live := e.shown || now.Before(own)",
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
		Name: "the retry of a locked key ignores its bucket", File: "limiter/penalty.go",
		Old: "if retry = max(retry, left); !r.Allowed", New: "if retry = left; !r.Allowed",
		Test: "TestMemoryConforms",
	},
	{
		Name: "the retry of a locked key on Redis ignores its bucket", File: "limiter/redislimiter/lua/run.lua",
		Old: "math.max(retry, seen(locked)) or 0", New: "seen(locked) or 0",
		Package: "limiter/redislimiter", Test: "TestConforms",
	},
	{
		Name: "a short window is dropped beside a long one", File: "limiter/window.go",
		Old: "max(o.asked, w.due)+longest > t", New: "o.frame.leaves(o.asked) > t",
		Test: "TestMemoryConforms",
	},
	{
		Name: "a short window on Redis is dropped beside a long one", File: "limiter/redislimiter/lua/frames.lua",
		Old: "f[ASKED] + longest + f[SPAN] / 4", New: "f[ASKED] + f[SPAN]",
		Package: "limiter/redislimiter", Test: "TestConforms",
	},
	{
		Name: "what is reserved in a block that has begun counts as taken", File: "limiter/window.go",
		Old: "latest = max(t, w.due)", New: "latest = t",
		Test: "TestMemoryConforms",
	},
	{
		Name: "a view forgets what was reserved", File: "limiter/window.go",
		Old: "w.due = max(w.due, room)\n", New: "",
		Test: "TestMemoryConforms",
	},
	{
		Name: "a window gives back what it never counted", File: "limiter/view.go",
		Old: "if taken < w.since {", New: "if false {",
		Test: "TestMemoryConforms",
	},
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
		Old: "(int64(r.Per)-1)/r.N + 1", New: "int64(r.Per) / r.N",
		Test: "TestBucketConforms",
	},
	{
		Name: "a bucket has one token more", File: "limiter/gcra.go",
		Old: "need > free {", New: "need > free+g.interval {",
		Test: "TestBucketConforms",
	},
	{
		Name: "a joiner starts full", File: "limiter/holding.go",
		Old: "h.set(now, float64(max(0, h.part.Burst)), 0)", New: "h.set(now, missing, 0)",
		Test: "TestHolding",
	},
	{
		Name: "a part that grows is full", File: "limiter/holding.go",
		Old: "	return h.missing - missing\n}\n\n// Trim", New: "	return min(0, h.missing-missing)\n}\n\n// Trim",
		Test: "TestHolding",
	},
	{
		Name: "what is held beyond a part lasts", File: "limiter/holding.go",
		Old: "h.beyond * max(0, 1-float64(passed)/fill)", New: "h.beyond * max(1, 1-float64(passed)/fill)",
		Test: "TestHolding",
	},
	{
		Name: "a handover is not less with time", File: "limiter/holding.go",
		Old: "lost := h.Earned(age, false)", New: "lost := h.Earned(0, false)",
		Test: "TestHolding",
	},
	{
		Name: "keys that owed more than others are forgotten", File: "limiter/holding.go",
		Old: "own < accepted {", New: "own < 0 {",
		Test: "TestHolding",
	},
	{
		Name: "unknown keys owe nothing", File: "limiter/owe_words.go",
		Old: "max(floor, r.current(r.unknown.word(key), t))", New: "floor",
		Test: "TestHolding",
	},
	{
		Name: "a key that was full is dropped with what it owes since", File: "limiter/keys_word.go",
		Old: "; latest > now {", New: "; latest < 0 {",
		Test: "TestDroppedKeysOwe",
	},
	{
		Name: "a handover is claimed twice", File: "limiter/redislimiter/lua/members_beat.lua",
		Old: "  redis.call('HDEL', KEYS[3], all[oldest])\n", New: "",
		Package: "limiter/redislimiter", Test: "TestHandoverIsClaimedOnce",
	},
	{
		Name: "each instance begins a fleet", File: "limiter/redislimiter/lua/members_beat.lua",
		Old: "elseif new == 1 and count == 1 then", New: "elseif new == 1 then",
		Package: "limiter/redislimiter", Test: "TestFleetBegins",
	},
	{
		Name: "a fleet that Redis has lost begins", File: "limiter/redislimiter/lua/members_beat.lua",
		Old: "  began, last = 0, 0 --", New: "  --",
		Package: "limiter/redislimiter", Test: "TestLostFleetDoesNotBegin",
	},
	{
		Name: "a silent member keeps what others have earned", File: "limiter/redislimiter/members_share.go",
		Old: "rejoined && a.deaths != s.deaths && s.heard", New: "false",
		Package: "limiter/redislimiter", Test: "TestSilentMember",
	},
	{
		Name: "a number that is not known counts as one", File: "attach/fleet.go",
		Old: "		h.guard.SetInstances(instances)\n", New: "",
		Test: "TestFleetStartsWithoutRedis",
	},
	{
		Name: "an instance begins with its whole part", File: "attach/fleet.go",
		Old: "		_ = h.guard.HandOver() // until members say what this instance holds\n", New: "",
		Test: "TestFleetStartsTogether",
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
		Name: "one limit is taken although another denies, in memory", File: "limiter/together.go",
		Old: "if !op.together() || denied && r.Allowed ||", New: "if !op.together() ||",
		Test: "TestMemoryConforms",
	},
	{
		Name: "one limit is taken although another denies, by the short script", File: "limiter/redislimiter/lua/plain.lua",
		Old: "    if denied then\n", New: "    if false then\n",
		Package: "limiter/redislimiter",
		Test:    "TestTheRefusedStarveNobody|TestPlainTakesAreAsOthers",
	},
	{
		Name: "one limit is taken although another denies, by the script", File: "limiter/redislimiter/lua/run.lua",
		Old: "  elseif not denied then\n", New: "  else\n",
		Package: "limiter/redislimiter",
		Test:    "TestTheRefusedStarveNobody|TestPlainTakesAreAsOthers",
	},
	{
		Name: "the penalty of a limit that denies is lost where limits are asked together", File: "limiter/redislimiter/lua/run.lua",
		Old: "if retry > 0 and penalty > 0 and kind ~= PEEK then", New: "if retry > 0 and penalty > 0 and kind ~= PEEK and not on.trial then",
		Package: "limiter/redislimiter",
		Test:    "TestDenialsTogetherHaveEffects",
	},
	{
		Name: "what several parts of a request take of one key is kept though it is refused", File: "limiter/redislimiter/lua/run.lua",
		Old: "if n > 0 then got = try(k, true, n, mark) end", New: "",
		Package: "limiter/redislimiter",
		Test:    "TestTogetherOfOneKey",
	},
	{
		Name: "limits beside one that is known to deny are asked", File: "limiter/cached.go",
		Old: "denied = denied || ops[i].together()", New: "denied = false",
		Test: "TestCachedAsksNothingBesideAKnownDenial",
	},
	{
		Name: "a limit in shadow mode refuses those that are asked together with it", File: "middleware/limit.go",
		Old: "ask.Together = cl.spec.limit.Mode != hotparam.ModeShadow", New: "ask.Together = true",
		Test: "TestExactTogether",
	},
	{
		Name: "a return shrinks with each later one", File: "limiter/redislimiter/lua/bucket.lua",
		Old: "left = math.max(left, n * b.cost - (on.t - since) * b.earn) end", New: "left = left end",
		Package: "limiter/redislimiter",
		Test:    "TestReturnsDoNotLeak",
	},
	{
		Name: "a return gives back what was earned at another rate", File: "limiter/redislimiter/lua/bucket.lua",
		Old: "since > 0 and b.turn <= since and", New: "since > 0 and",
		Package: "limiter/redislimiter",
		Test:    "TestReturnAfterAnotherRate",
	},
	{
		Name: "what was taken last and returned stays in the line", File: "limiter/redislimiter/lua/bucket.lua",
		Old: "b.line = b.line - math.floor(back / b.cost)", New: "b.line = b.line",
		Package: "limiter/redislimiter", Test: "TestReturnsInReverseOrder",
	},
	{
		Name: "a key whose marks are still to come is dropped", File: "limiter/keys_word.go",
		Old: "word+w.back() > now || word > now {", New: "word > now {",
		Test: "TestMarksOfDroppedKey",
	},
	{
		Name: "what was earned is given back late", File: "limiter/deferred_state.go",
		Old: "N: op.N - int64(", New: "N: op.N - 0*int64(",
		Test: "TestDeferredGivesBackNothingEarned",
	},
	{
		Name: "nobody moves up for a waiter that gives up", File: "limiter/waitline.go",
		Old:  "		h := &l.held[len(l.held)-1]\n		out := *h\n",
		New:  "		h := &l.held[len(l.held)-1]\n		*h, l.held[0] = l.held[0], *h\n		out := *h\n",
		Test: "TestWaitersGiveUp",
	},
	{
		Name: "a reservation is cancelled though others wait", File: "limiter/waitline.go",
		Old: "	most := l.wanted\n", New: "	most := l.wanted - 1\n",
		Test: "TestWaitersGiveUp",
	},
	{
		Name: "a line of a remote key asks once", File: "limiter/waitask.go",
		Old: "	most := min(l.wanted, l.depth())\n", New: "	most := int64(0)\n",
		Test: "TestWaitersGiveUp",
	},
	{
		Name: "a line of a remote key reserves for all that wait", File: "limiter/waitask.go",
		Old: "	return max(n, l.first.N)\n", New: "	return max(n, l.wanted)\n",
		Test: "TestLineHoldsLittle",
	},
	{
		Name: "a line of a remote key keeps what many asked for at once", File: "limiter/waitline.go",
		Old: "l.reserved > depth+depth/2", New: "l.reserved > l.wanted",
		Test: "TestLineHoldsLittle",
	},
	{
		Name: "a turn stays where it was when those before it gave back", File: "limiter/waitask.go",
		Old: "return w.joins() && at.Sub(now) > l.far()", New: "return false",
		Test: "TestLineMovesUp",
	},
	{
		Name: "a newcomer overtakes those that could not reserve", File: "limiter/waitlines.go",
		Old: "!(l.short && c.Patient)", New: "true",
		Test: "TestNobodyOvertakesInAFullQueue",
	},
	{
		Name: "permits that are put together are used later than they are due", File: "limiter/waitline.go",
		Old: "h.due.Add(-time.Duration(h.n-n) * h.step)", New: "h.due",
		Test: "TestWaitsInAnyMix",
	},
	{
		Name: "those that want more permits take over places of fewer", File: "limiter/waitlines.go",
		Old: "		key.n = c.N\n", New: "		key.n = 0\n",
		Test: "TestWaitsInAnyMix",
	},
	{
		Name: "a waiter waits on when its turn has become too late", File: "limiter/waitline.go",
		Old: "		case w.late(at) && held:\n", New: "		case false:\n",
		Package: "middleware", Test: "TestNobodyWaitsForLonger",
	},
	{
		Name: "a turn of a request that is refused is lost", File: "limiter/waitlines.go",
		Old: "			l.hold(h)\n", New: "",
		Package: "middleware", Test: "TestTurnOfARefusedRequest",
	},
	{
		Name: "a request that gives up stays in line", File: "middleware/grants.go",
		Old: "	r.leaveLines()\n", New: "",
		Test: "TestClientsGiveUp|TestTurnsOfSeveralLimits",
	},
	{
		Name: "a request overtakes the line of an exact limit", File: "middleware/exact.go",
		Old: "			r.joinLine(&r.pending.exact[i])\n", New: "			_ = i\n",
		Test: "TestInstancesTakeTurns|TestClientsGiveUp",
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
		Old: "	s.setHeaders(a.Header, &d)\n", New: "",
		Test: "TestBeginAnswersAsHandlerDoes",
	},
	{
		Name: "a request that passes states no limit", File: "middleware/http.go",
		Old: "			spec.setHeaders(w.Header(), &d)\n", New: "",
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
