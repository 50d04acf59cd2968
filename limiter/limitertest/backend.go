package limitertest

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter"
)

// Config tells the suite about a backend.
type Config struct {
	// New makes a backend that knows no key yet, and whose time is now's: since the
	// Unix epoch, in whole ticks. It is called for each case and for each of the many
	// random schedules: what is expensive is shared, and only the names of the keys
	// are fresh. It fails the test if it cannot.
	New func(t *testing.T, now func() time.Duration) limiter.Backend
	// Tick is how fine the backend tells time; 0: a nanosecond.
	Tick time.Duration
	// Supports tells what the backend can do; nil: all. The suite asks for nothing
	// else, and skips a named case that needs it.
	Supports func(q *hotparam.Quota, kind limiter.Kind) bool
	// Schedules is how many random schedules each property tries, for backends whose
	// calls take long; 0: as many as rapid does, 100.
	Schedules int
}

func (c *Config) supports(q *hotparam.Quota, kind limiter.Kind) bool {
	return c.Supports == nil || c.Supports(q, kind)
}

func (c *Config) tick() time.Duration { return max(c.Tick, 1) }

// TestBackend runs the suite on a backend. It is meant to be run under the race
// detector.
func TestBackend(t *testing.T, c Config) {
	for _, x := range cases {
		t.Run(x.name, func(t *testing.T) { x.run(newWorld(t, &c)) })
	}
	for _, p := range properties {
		t.Run(p.name, func(t *testing.T) { p.run(t, &c) })
	}
}

// namedCase is a promise, as its name states it. Those that begin with a letter and a
// number, or with "failure mode", are lines of the checklist: see checklist.go.
type namedCase struct {
	name string
	run  func(*world)
}

var cases = concat(
	bucketCases, leakyCases, windowCases, logCases, blockCases, warmUpCases, penaltyCases,
	askCases, clockCases, changeCases, quotaCases, returnCases, keyCases, batchCases, concurrentCases,
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
	{"quotas in any mix admit what the largest of them allows", testMixes},
}

func concat(lists ...[]namedCase) (all []namedCase) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}
