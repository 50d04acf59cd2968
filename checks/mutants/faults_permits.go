package mutants

// Faults in the leases of a semaphore that an instance keeps for its next requests.

var permitFaults = []Fault{
	{
		Name: "a lease that Redis has lost is kept", File: "limiter/redislimiter/semaphore_look.go",
		Old: "if reply[2+i] == 1 {", New: "if reply[2+i] >= 0 {",
		Test: "TestKeptPermitsFlushed",
	},
	{
		Name: "a lease that has ended is left to the next request", File: "limiter/redislimiter/semaphore_lease.go",
		Old:  "		return true\n	default:\n		return !isBefore(now, *l.until.Load())",
		New:  "		return false\n	default:\n		return false",
		Test: "TestKeptPermitsRedisAway",
	},
	{
		Name: "a lease is kept for longer although others wait", File: "limiter/redislimiter/semaphore_look.go",
		Old: "if k.wanted > 0 {", New: "if false {",
		Test: "TestKeptPermitsFair",
	},
	{
		Name: "a lease that others wait for goes back late", File: "limiter/redislimiter/semaphore_look.go",
		Old: "sent.Sub(l.granted) >= keptPeriod", New: "sent.Sub(l.granted) >= keptFor",
		Test: "TestKeptPermitsFair",
	},
	{
		Name: "a spare is free in Redis", File: "limiter/redislimiter/semaphore_kept.go",
		Old: "		l.idle = now\n", New: "		l.idle = now\n		s.addOwed(l)\n",
		Test: "TestKeptPermitsBound",
	},
	{
		Name: "a lease of another number of permits is left to the next request", File: "limiter/redislimiter/semaphore_kept.go",
		Old: "!s.keeping.Load() || l.permits != k.permits ||", New: "!s.keeping.Load() ||",
		Test: "TestKeptPermitsBound",
	},
	{
		Name: "a waiter that is served twice keeps both leases", File: "limiter/redislimiter/semaphore_line.go",
		Old: "handed.Release(handed.use)", New: "_ = handed.use",
		Test: "TestKeptPermitsBound|TestKeptPermitsCost",
	},
	{
		Name: "a request releases the lease of the next one", File: "limiter/redislimiter/semaphore_kept.go",
		Old: "if l.use != use || !l.used {", New: "if !l.used {",
		Test: "TestKeptPermitsReleasedTwice",
	},
	{
		Name: "a line that moves by itself asks for each request", File: "limiter/redislimiter/semaphore_line.go",
		Old: "first && !(w.keeps && s.keeping.Load() && k.deniedLately(w, time.Now())):", New: "first:",
		Test: "TestKeptPermitsCost",
	},
}
