package mutants

// Faults in algorithms, and in the tables and scripts that keep their state.

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
		Old: "max(o.asked, w.due)+longest > t", New: "o.frame.expiryOf(o.asked) > t",
		Test: "TestMemoryConforms",
	},
	{
		Name: "a short window on Redis is dropped beside a long one", File: "limiter/redislimiter/lua/frames.lua",
		Old: "f[ASKED] + longest + f[SPAN] / 4", New: "f[ASKED] + f[SPAN]",
		Package: "limiter/redislimiter", Test: "TestConforms",
	},
	{
		Name: "a window on Redis that nobody needed begins again when its quota asks", File: "limiter/redislimiter/lua/frames.lua",
		Old: "for _, list in ipairs({frames.over, frames.list}) do", New: "for _, list in ipairs({list}) do",
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
		Old: "f.owed.add(s, &op, &res, f.instances())", New: "_ = s",
		Test: "TestStallProperty",
	},
	{
		Name: "an instance that finds Redis takes what others owe", File: "limiter/failover_settle.go",
		Old: "	return f.breakers.Recovering(nodeOf(ctx, f.primary, op))", New: "	return 0",
		Package: "limiter/redislimiter", Test: "TestExactWithLocal",
	},
	{
		Name: "what was granted locally is earned twice", File: "limiter/ledger.go",
		Old: "return min(n, e.sent-e.settled+e.lacks(now))", New: "return 0",
		Package: "limiter/redislimiter", Test: "TestExactWithLocal",
	},
	{
		Name: "a lost call is a silence", File: "limiter/internal/breaker/silence.go",
		Old: " || int64(began.Sub(s.made)) < n.answered.Load()", New: "",
		Package: "limiter/internal/breaker", Test: "TestALostCallIsNoSilence",
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
		Name: "a bucket is never charged", File: "limiter/tokenbucket.go",
		Old: "return start + n*g.interval, v\n", New: "return start, v\n",
		Test: "TestBucketConforms",
	},
	{
		Name: "a token costs a nanosecond too little", File: "rules/rate.go",
		Old: "(int64(r.Per)-1)/r.N + 1", New: "int64(r.Per) / r.N",
		Package: "limiter", Test: "TestBucketConforms",
	},
	{
		Name: "a bucket has one token more", File: "limiter/tokenbucket.go",
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
		Old: "return stamp, t >= last", New: "return stamp, t >= 0*last",
		Test: "TestQuickTakesAreTakes",
	},
	{
		Name: "the clock of takes without a lock is lost", File: "limiter/states_word.go",
		Old: "max(s.last, int64(g.lent.stamp.Load()>>1))", New: "s.last",
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
		Name: "a mark of a part that is left is used again", File: "limiter/takeline.go",
		Old: "!last || ask.Keep > 0 ||", New: "!last ||",
		Test: "TestBucketConforms",
	},
	{
		Name: "a new state gives back what the dropped one took", File: "limiter/words.go",
		Old: "takeLine{word: g.first(t), born: t}", New: "takeLine{word: g.first(t)}",
		Test: "TestMarksOfDroppedKey",
	},
	{
		Name: "a take without a lock ignores what was returned before", File: "limiter/states_word.go",
		Old: "taken > 0 && stamp&1 != 0", New: "taken > 0 && stamp&1 > 1",
		Test: "TestAMarkCountsWhatWasReturned|TestAWordIsAskedAsItsStateIs",
	},
}
