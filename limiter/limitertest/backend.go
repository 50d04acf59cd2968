package limitertest

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// Config describes a backend to the suite.
type Config struct {
	// New returns a backend without keys whose clock is now: the time since the Unix epoch, in
	// whole ticks. It is called for each case and each of the many random schedules. So share
	// everything that is expensive, and use fresh names for keys instead. It fails the test if it
	// cannot make a backend.
	New func(t *testing.T, now func() time.Duration) limiter.Backend
	// Tick is the resolution of the backend's time. Zero means a nanosecond.
	Tick time.Duration
	// Supports reports whether the backend supports an ask. A nil Supports means all. The suite
	// makes no other asks, and skips named cases that need them.
	Supports func(q *rules.Quota, kind limiter.OpKind) bool
	// Together reports whether the backend is a [limiter.Batcher] that executes asks that are
	// Together as one. If it is false, the suite makes no such asks.
	Together bool
	// Schedules is the number of random schedules of each property, for backends with slow
	// calls. Zero means rapid's default, 100.
	Schedules int

	full bool // whether the backend has room for few keys, so that a retry on time may be denied
}

func (c *Config) supports(q *rules.Quota, kind limiter.OpKind) bool {
	return c.Supports == nil || c.Supports(q, kind)
}

func (c *Config) tick() time.Duration { return max(c.Tick, 1) }

// TestBackend runs the suite on a backend. Run it under the race detector.
func TestBackend(t *testing.T, c Config) {
	for _, x := range cases {
		t.Run(x.name, func(t *testing.T) { x.run(newWorld(t, &c)) })
	}
	for _, p := range properties {
		t.Run(p.name, func(t *testing.T) { p.run(t, &c) })
	}
}

// namedCase is a promise, stated by its name. Names that begin with a letter and a number, or
// with "failure mode", are lines of the checklist: see checklist_test.go.
type namedCase struct {
	name string
	run  func(*world)
}

var cases = concat(
	bucketCases, leakyCases, windowCases, logCases, blockCases, warmUpCases, penaltyCases,
	askCases, clockCases, changeCases, quotaCases, keyCases, batchCases, concurrentCases, waitCases,
)

type property struct {
	name string
	run  func(*testing.T, *Config)
}

var properties = []property{
	{"random schedules come to what the model says", testModel},
	{"any window holds what it may, and a retry passes on time", testBounds},
	{"what is charged afterwards keeps to the rate, the last one aside", testCharges},
	{"a clock that jumps back and forth grants nothing twice", testClockBounds},
	{"warm-up follows Guava's arithmetic", testWarmUp},
	{"any number may be asked for", testExtremes},
	{returnsInAnyOrder, testReturns},
	{"what is asked together is taken together or not at all", testTogether},
	{"quotas in any mix admit what the largest of them allows", testMixes},
}

func concat(lists ...[]namedCase) (all []namedCase) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}
