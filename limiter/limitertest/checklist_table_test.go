package limitertest

// checklist names the tests for each line. A case of the suite whose name begins with a line's id
// counts for that line without being listed, so lines that need nothing else list no test. Bugs, G
// and failure modes list theirs.
var checklist = []line{
	{"A1", "capacity, inflow, lazy refill, nothing lost", nil},
	{"A2", "a denial consumes nothing; a cost above the capacity is refused at once", nil},
	{"A2 bug 1", "the first call is not checked against the capacity", []string{
		suite + "A2 bug: a first call above the capacity is refused at once, with no retry",
	}},
	{"A2 bug 2", "the cap is applied after the subtraction", []string{
		suite + "A2 bug: a bucket whose costs are above 1 is never overfilled",
	}},
	{"A3", "a penalty locks a key after a denial", []string{"middleware TestPenalty"}},
	{"A3 bug 1", "-1 remains while a key is locked", []string{
		suite + "A3 bug: while a key is locked nothing remains, and never less",
	}},
	{"A3 bug 2", "a sliding window tells a duration for an instant", []string{
		suite + "A3 bug: the retry of a sliding window is a time from now, locked or not",
	}},
	{"A4", "state expires no sooner than when it is full; one hash tag; braces in keys; all keys declared", []string{
		"limiter/redislimiter TestStateOutlivesWhatWasTaken", "limiter/redislimiter TestKeysAreForgottenWhenTheyAreAsNew",
		"limiter/redislimiter TestNeverAcrossSlots", "limiter/redislimiter TestKeysOfAnyBytes", "limiter/redislimiter TestStoreLeastRights",
	}},
	{"A5", "four algorithms, in process and on Redis; windows from the first request or the natural period; a negative limit", []string{
		"limiter TestMemoryConforms", "limiter/redislimiter TestConforms", "limiter/redislimiter TestConformsOnCluster",
	}},
	{"A6", "several rules for one request: any denial denies, the longest wait wins", []string{
		"limiter TestTakeAllTellsTheLongestWait", "limiter TestTakeAllIsEachInTurn", "middleware TestAllApply", "middleware TestEachGivesBack",
	}},
	{"A7", "peek; rules are replaced while running, counters survive a changed window", []string{
		"limiter TestSetQuota", "middleware TestReloadKeepsState", "middleware TestReloadToAndFro",
		suite + "two quotas of one family in turns admit what the larger one allows",
		suite + "quotas in any mix admit what the largest of them allows",
	}},
	{"A8", "custom status, headers and body; hooks; unique names; an empty target is an error", []string{
		"middleware TestRefuse", "middleware TestWithLimited", "middleware TestHooks", "rules TestValidate",
	}},

	{"B1", "whole API, slow API, costly parameter, hot parameter", []string{
		"examples/scenarios TestWholeAPI", "examples/scenarios TestSlowAPI", "examples/scenarios TestCostlyParameter", "examples/scenarios TestHotParameter",
		"middleware TestOneBucket", "middleware TestSlowAPI", "middleware TestExpensiveKeysAreRefused", "middleware TestTwoHotKeys",
	}},
	{"B2", "so many per time, at most, at first, and a block; rate 0 is an error", []string{
		"rules TestLimitValidate", "rules TestParseRate", "rules TestParseRateTellsWhatIsWrong", "config TestBadFiles",
	}},
	{"B3", "matchers of the user's own, in order; what to do where none matches", []string{
		"middleware TestMatcher", "middleware TestMatchersInOrder", "middleware TestIgnore", "middleware TestNoMatch",
	}},
	{"B4", "a call that may wait; when to retry is part of the error", []string{
		"limiter TestWaitIsExact", "limiter TestWaitNeverAndTooLong", "limiter TestDeniedError",
	}},
	{"B4 bug", "the time to retry is always 0", []string{suite + "B4 bug: a denial tells when to ask again, for each algorithm"}},
	{"B5", "a block is set on denial and ends by itself", nil},
	{"B6", "a fixed window: counter and expiry at once", []string{"limiter/redislimiter TestExpiryOfAWindowIsSetOnce"}},
	{"B6 bug", "one fewer than the limit is admitted", []string{suite + "B6 bug: a window admits exactly its limit"}},
	{"B7", "a leaky bucket as GCRA; redis-cell's reply, and redis-cell itself", []string{
		"limiter/redislimiter TestCellReply", "limiter/redislimiter TestAnswersAsRedisCell", "limiter/redislimiter TestCell",
	}},
	{"B7 bug", "who is shaped waits until the bucket is empty", []string{suite + "B7 bug: shaped, nobody waits until the bucket is wholly empty"}},
	{"B8", "a token bucket in Lua on Redis's time", []string{"limiter/redislimiter TestConforms", "limiter/redislimiter TestTogetherTheyKeepTheLimit"}},
	{"B8 bug 1", "time in whole seconds, and floors", []string{
		suite + "B8 bug: rate 0.5/s polled each 1.1 s admits 504 in 999.9 s, not 5",
		suite + "B8 bug: rate 10/s with a burst of 10 admits 1,010 in 100 s, not 500",
	}},
	{"B8 bug 2", "the cost is ignored; expiry before the bucket is full; the rule is not part of the key", []string{
		suite + "B8 bug: a cost of several tokens takes them all",
		suite + "B8 bug: a drained bucket gives no free burst before it had the time to fill",
		suite + "B8 bug: two limits of one key keep apart what was taken",
		"limiter/redislimiter TestStateOutlivesWhatWasTaken",
	}},
	{"B9", "regenerating stamina", []string{"examples/stamina TestStaminaComesBack"}},

	{"C1", "requests become counts of their sorted parameters, by StatsD", []string{"checks/e2e TestPlainStatsDLinesMakeAKeyHot", "collector/statsdsink TestStatsDGolden"}},
	{"C1 bug", "a parameter that is written twice", []string{"rules TestTextGolden", "middleware TestRepeatedParameterCountsOnce"}},
	{"C2", "counts above the threshold reach the middleware, which applies the rule", []string{
		"checks/e2e TestHotParameterIsLimitedOnAllInstancesAndCools",
		"checks/e2e TestFlashCrowdByGraphite", "checks/e2e TestHotParameterByGraphiteCools",
	}},

	{"D1", "an exact sliding log", []string{"limiter TestSlidingLogMemory", "limiter/redislimiter TestDenialsWriteNothing"}},
	{"D1 bug 1", "two hits in one instant count as one", []string{suite + "D1 bug: two hits in one instant both count"}},
	{"D1 bug 2", "the client's clock", []string{
		suite + "failure mode: a clock that goes back refills nothing twice", "limiter/redislimiter TestTogetherTheyKeepTheLimit",
	}},
	{"D1 bug 3", "who hammers never recovers", []string{suite + "D1 bug: who hammers recovers, since denials are not recorded"}},
	{"D2", "a funnel with fractions, O(1), that expires", nil},
	{"D2 bug 1", "a funnel cannot be changed", []string{suite + "D2 bug: a funnel takes another capacity and another rate"}},
	{"D2 bug 2", "three scripts for one decision", []string{
		"limiter/redislimiter TestOneRoundTrip", suite + "concurrent asks at one instant are admitted exactly as many as there are",
	}},
	{"D3", "EVALSHA; an error is no panic", []string{"limiter/redislimiter TestReadReply", "limiter/redislimiter FuzzReadReply"}},
	{"D3 bug", "no EVAL after a flush or a failover", []string{
		"limiter/redislimiter TestScriptsAreLostMeanwhile", "limiter/redislimiter TestSemaphoreScriptsFlushed",
	}},

	{"E1", "TrySetRate, SetRate, UpdateRate", nil},
	{"E2", "overall and per client", nil},
	{"E3", "TryAcquire, with a timeout, and Acquire", nil},
	{"E4", "a permit is back an interval after it was taken, on Redis's time", []string{"limiter/redislimiter TestPermitsClockGoesBack"}},
	{"E4 bug", "entries are counted, not permits", []string{
		suite + "E4 bug: permits come back, not entries",
		suite + "E4 bug: a permit is back an interval after it was taken, and permits are counted, not entries",
	}},
	{"E5", "expiry, keep-alive, available permits, release; a lost part breaks nothing", []string{"limiter/redislimiter TestPermitsLostParts"}},

	{"F1", "reject, wait, serve a default, let part pass; any mix of dimensions", []string{
		"middleware TestRefuseStatus", "middleware TestWait", "middleware TestServe", "middleware TestShadow", "middleware TestKeys",
	}},
	{"F2", "both buckets, shaping and policing; waits are exact", []string{"limiter TestWaitIsExact", "limiter TestTokenBucketContended"}},
	{"F2 bug 1", "a wait spins", []string{"limiter TestWaitDoesNotSpin"}},
	{"F2 bug 2", "who asks for more than the capacity waits for ever", []string{
		suite + "F2: what is above the capacity is refused, and does not wait for ever",
	}},
	{"F3", "a new instance ramps up; snapshots; warm-up", []string{
		"limiter/adaptive TestRampWeight", "limiter TestSnapshot", suite + "warm-up follows Guava's arithmetic",
	}},
	{"F4", "the limit follows the load, and a schedule", []string{"limiter/adaptive TestAdaptiveSimulated", "limiter/adaptive TestCPU", "limiter/adaptive TestSchedule", "limiter/adaptive TestScheduleDST"}},
	{"F5", "a sliding window in blocks, of any unit, on the server's time", []string{"limiter TestSlidingBlocksBound"}},
	{"F5 bug 1", "the script does not parse", []string{"limiter/redislimiter TestConforms"}},
	{"F5 bug 2", "after an idle spell the old count stays", []string{
		suite + "F5 bug: after an idle spell longer than the window nothing is left of it",
	}},
	{"F5 bug 3", "a first call above the limit is admitted", []string{suite + "F5 bug: a first call above the limit is refused"}},
	{"F5 bug 4", "wrapped blocks keep stale counts", []string{suite + "F5 bug: blocks that come round again keep no stale counts"}},
	{"F5 bug 5", "unpack fails near 8,000 items", []string{
		suite + "D1: a log of many hits, far more than a script may unpack", suite + "F5: blocks as fine as may be", "limiter/redislimiter TestFullLog",
	}},
	{"F6", "a share by live instances; denied here by what the backend said; exact; alone beyond the limit, or when Redis is away", []string{
		"middleware TestShare", "limiter/redislimiter TestMembersDeath", "limiter TestCachedDeniesWithoutACall",
		"checks/e2e TestSharesFollowTheInstances", "checks/e2e TestLimitsOfThreeInstances",
		"middleware TestExact", "middleware TestExactAway", "limiter TestFailoverDecidesAtOnceWhileThePrimaryIsAway",
		"limiter TestFailoverPerNode", "limiter/redislimiter TestOneMasterLost",
		"middleware TestExactFarBeyondTheLimit", "limiter TestCachedFarBeyondTheLimit", "limiter TestCachedInstancesProperty",
		"limiter TestCachedWhileCallsAreUnderWay",
	}},
	{"F7", "a semaphore, here and over Redis; a bounded line with a deadline", []string{
		"limiter/semaphore TestSemaphoreConforms", "limiter/semaphore TestSemaphoreUnfair", "limiter/redislimiter TestSemaphoreCrash",
		"limiter/redislimiter TestSemaphorePermitsChange", "middleware TestPermitComesBack", "middleware TestPermitsOfManyRules",
	}},
	{"F8", "burst first, then limit; a window's end is set once", []string{"limiter/redislimiter TestExpiryOfAWindowIsSetOnce"}},
	{"F9", "rules reload while running", []string{
		"middleware TestReloadWhileServing", "middleware TestReloadUnderLoad", "middleware TestReloadKeepsState", "limiter/semaphore TestSemaphoreResize",
	}},

	{"G1", "Reserve, Cancel, Wait", []string{
		suite + "G: a reservation is served later, in the order of asking",
		suite + "G: a reservation that is cancelled gives back what was reserved",
		suite + "G: a reservation goes to the first window with room, and later ones behind it",
		suite + "G: what was taken in a window that is over is not given back to the next",
		suite + "G: what is given back is gone from the log, and from no other hit",
		suite + "what is returned goes to where it was taken, whatever the algorithm is by then",
		"limiter TestReservation", "limiter TestWaitIsExact",
	}},
	{"G2", "cost per request", []string{"middleware TestEnterCost", "middleware TestCostIn"}},
	{"G3", "AllowAtMost; classes that leave some to others", []string{
		suite + "G: AtMost takes as many as there are", suite + "G: a class that must leave some to others is denied first",
		suite + "F7, G: a class that comes first overtakes in the line", "middleware TestPriority",
	}},
	{"G4", "many keys in one round trip", []string{
		suite + "G: many keys are asked for at once, each on its own", suite + "G: a batch asks for one key in its order",
		suite + "G: a batch of none and one of a thousand",
		"limiter/redislimiter TestOneRoundTrip", "limiter/redislimiter TestOneRoundTripInACluster", "limiter TestTakeAllInOneCall",
	}},
	{"G5", "shadow mode, per rule and for all", []string{"middleware TestShadow", "middleware TestWithShadow"}},
	{"G6", "allow and deny lists; limits per value", []string{"middleware TestExceptions", "rules TestExceptionMatchesText"}},
	{"G7", "a warning near the limit", []string{"middleware TestHooks"}},
	{"G8", "expiry with jitter", []string{"limiter/redislimiter TestConfig"}},
	{"G9", "calendar windows", []string{
		suite + "A5, G: a window begins with its natural period", suite + "G: calendar windows know the time zone and its summer time",
		suite + "G: calendar windows are as long as their month and year", "limiter/redislimiter TestCalendarByRedisClock",
	}},
	{"G10", "drain on overload", []string{"limiter/semaphore TestSemaphoreDrain"}},
	{"G11", "RateLimit and RateLimit-Policy, Retry-After, a problem as the body", []string{"middleware TestHeaders", "middleware TestRefuse"}},
	{"G12", "X-RateLimit headers", []string{"middleware TestHeadersLegacy"}},

	{"failure mode 1", "a clock goes back", []string{
		suite + "failure mode: a clock that goes back refills nothing twice",
		suite + "failure mode: a clock that goes back by up to a minute grants nothing, for each algorithm",
		suite + "failure mode: a clock that is set back by hours grants nothing, and locks nobody out",
		suite + "failure mode: a clock that jumps years ahead and back grants one burst, and locks nobody out",
		suite + "a clock that jumps back and forth grants nothing twice",
	}},
	{"failure mode 2", "an expiry of 0", []string{"limiter/redislimiter TestKeysAreForgottenWhenTheyAreAsNew", "limiter/redislimiter TestRatesAreExact"}},
	{"failure mode 3", "the fallback has the whole limit on every node", []string{"limiter TestShare", "middleware TestExactAway"}},
	{"failure mode 4", "Redis away costs each request seconds, and calls are repeated", []string{
		"limiter TestStallProperty", "limiter/redislimiter TestStall", "limiter/redislimiter TestChargeOnce",
		"limiter/redislimiter TestRedisIsAway", "limiter/redislimiter TestNothingIsRepeated", "limiter TestFailoverDecidesAtOnceWhileThePrimaryIsAway",
	}},
	{"failure mode 5", "CROSSSLOT", []string{"limiter/redislimiter TestNeverAcrossSlots", "limiter/redislimiter TestConformsOnCluster"}},
	{"failure mode 6", "a round trip per rule", []string{"limiter TestTakeAllInOneCall", "limiter/redislimiter TestOneRoundTrip"}},
	{"failure mode 7", "the limiter's own key becomes the hot key of Redis", []string{
		"limiter TestCachedDeniesWithoutACall", "middleware TestExactFarBeyondTheLimit",
	}},
	{"failure mode 8", "a share below one token rejects all", []string{"middleware TestShareBelowOne", "limiter TestShareIsValid"}},
	{"failure mode 9", "a rate above 1,000/s rounds its interval to 0", []string{
		suite + "failure mode: a rate above 1,000/s does not round its interval to 0",
	}},
	{"failure mode 10", "overflow of int64", []string{
		suite + "any number may be asked for", "limiter TestTokenBucketOverflow", "limiter TestBucketExtremes", "limiter/redislimiter TestExtremes",
	}},
	{"failure mode 11", "a limit of 0", []string{
		suite + "failure mode: a limit of 0 or less is never taken for one that lets pass", "rules TestLimitValidate", "limiter TestNewRefuses",
	}},
	{"failure mode 12", "a retry in the wrong unit", []string{
		suite + "failure mode: a retry is told in nanoseconds of time, whatever the unit of the rate", "middleware TestHeaders",
	}},
	{"failure mode 13", "limiters are never freed, or hot ones are evicted", []string{
		"limiter TestAMillionIdleKeys", "limiter TestKeyedForgetsIdleKeys", "limiter TestKeyedFloodDropsNoDrainedKey", "limiter/redislimiter TestPlansAreBounded",
	}},
	{"failure mode 14", "IPv6 addresses, each its own client", []string{"middleware TestClientKey"}},
	{"failure mode 15", "a Cancel after its time", []string{
		suite + "failure mode: a reservation that is cancelled after its time gives back nothing that has come back",
	}},
	{"failure mode 16", "a timer for each who waits", []string{"limiter/semaphore TestSemaphoreMemory", "limiter/redislimiter TestPermitsLine"}},
	{"failure mode 17", "the stack grows with those who wait", []string{"limiter/semaphore TestSemaphoreConcurrent", "limiter/permits TestPermitsWait"}},
}
